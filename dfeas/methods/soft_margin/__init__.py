"""Soft margins: the hyperplane that trades the width of the margin for points on its wrong side."""
