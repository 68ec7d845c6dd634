"""The space of a kernel, from values to proofs: a leaf, which ``dfeas.leaves`` asks for.

Remove the folder, and points are solved as before.
"""
