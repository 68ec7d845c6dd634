"""Proofs that floating point alone cannot give: exact signs of scores, exact conflicts."""
