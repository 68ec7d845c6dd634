"""Search for exact kinds: facial reduction in integers, guided by linear programmes in float64."""
