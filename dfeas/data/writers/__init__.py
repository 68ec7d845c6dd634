"""Writing datasets, and appending to them."""
