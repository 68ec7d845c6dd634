"""Reports: what runs did and why they stopped, as a page that opens offline, and as a table."""

from dfeas.report.compare import compare
from dfeas.report.writing import report

__all__ = ["compare", "report"]
