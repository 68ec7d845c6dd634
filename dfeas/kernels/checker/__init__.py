"""The checker of kernels: it imports the checker of points, stored data and errors, and nothing that searches."""
