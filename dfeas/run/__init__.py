"""A run: what is asked, who reads the data, the loop, what is kept on the way, and how it is shown."""
