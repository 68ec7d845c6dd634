"""What a run says of other points."""
