"""A conversation as a terminal shows it: safe, wrapped, in our colours."""
