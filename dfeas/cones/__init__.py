"""Products of cones, from files to proofs: a leaf, which ``dfeas.leaves`` asks for.

Remove the folder, and points are solved as before.
"""
