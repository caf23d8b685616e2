"""What agents can call during a turn: the conversation as tools of an MCP server."""
