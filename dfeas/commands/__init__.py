"""The commands of ``dfeas``, by what they are about."""
