"""How data can be separated: the three kinds, and the file of a run that says which."""

COMPLETE, QUASI, OVERLAP = "complete", "quasi-complete", "overlap"
SEPARATION = "separation.json"
SEPARATED = "separation"
"""What a solve is for, as its checkpoints say."""
