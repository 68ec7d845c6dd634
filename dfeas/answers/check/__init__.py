"""What files claim, proved again or compared."""
