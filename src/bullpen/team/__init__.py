"""The team: its file, its members, what they may do, and what they are told."""
