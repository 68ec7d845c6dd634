"""What runs and questions return: shown, written, read back, proved again, and applied to other points."""
