"""What is asked of data and of finished runs beyond a single verdict."""
