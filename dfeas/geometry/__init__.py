"""What the data is to a method: points, cones, or points in the space of a kernel."""
