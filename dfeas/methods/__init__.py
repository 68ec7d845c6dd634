"""Methods: the algorithms as ask/tell state machines."""
