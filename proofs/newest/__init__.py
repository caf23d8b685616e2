"""`make newest`: what the vendors' newest releases change for us."""
