"""Where conversations are kept: every message, every turn and what each agent saw, on disk before anyone is told so."""
