"""The terminal: keys and the line that a person edits, and text that is safe, wrapped and coloured."""
