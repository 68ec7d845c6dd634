"""Integers of any length, floats as integers, and bounds of rounding errors: search and checker both compute with them."""
