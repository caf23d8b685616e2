"""Turns that have ended: finding one, what its agent saw, and what it did."""
