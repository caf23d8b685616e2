"""Torture of nodes, workers and PostgreSQL, which needs the extra for many machines; many_machines.py is its class."""
