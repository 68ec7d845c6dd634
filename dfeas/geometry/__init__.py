"""Geometries: in which space points, kernels or cones are separated."""
