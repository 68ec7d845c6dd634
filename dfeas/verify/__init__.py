"""The checker: proves a certificate from the stored points and labels alone, rounding errors included."""
