"""A conversation line by line: the plain chat, and what a command prints of it."""
