"""The team as one agent in an editor, which speaks the Agent Client Protocol with us."""
