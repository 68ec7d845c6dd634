"""The checker of certificates about cones: everything is computed again from the stored rows, rounding errors included."""

from dfeas.verify_cones.checker import check, check_range, require_evidence

__all__ = ["check", "check_range", "require_evidence"]
