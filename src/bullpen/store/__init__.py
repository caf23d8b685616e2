"""Where conversations are kept: every message, turn and prompt, on disk before any caller continues."""
