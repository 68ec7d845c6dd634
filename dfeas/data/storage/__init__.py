"""Storage: raw bytes, the layout of a dataset on disk, and readers of its arrays."""
