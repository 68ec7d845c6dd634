"""Linear algebra in memory: points dense or sparse, columns, and their separation."""
