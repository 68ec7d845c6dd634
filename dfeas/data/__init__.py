"""Data: what it is, how a block of it is read, and how it is written."""
