"""Torture: everything that may happen to bullpen, done to it on purpose, and counted.

Each class of torture is a module here with a `TORTURE` in it (outcome.py says what that is). `make torture` runs them
all at full size and writes docs/reliability.md; CI runs them small. Every class has a fault that it must catch, planted
in the test and never in the product.
"""
