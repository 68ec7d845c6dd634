"""Runs of soft margins."""
