"""Datasets of cones: rows by product, from files and from memory."""
