"""Mutation testing: one small mistake at a time in the riskiest modules, and whether the tests notice it."""
