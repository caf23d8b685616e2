"""Many machines: nodes that share one PostgreSQL, and workers that run agents for them."""
