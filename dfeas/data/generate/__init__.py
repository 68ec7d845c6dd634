"""Generated families with known answers."""
