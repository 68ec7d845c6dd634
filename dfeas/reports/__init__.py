"""Reports: what runs did and why they stopped, as a page that opens offline, and as a table."""
