"""`bullpen serve`: pages and a JSON API for the same conversations, without any logic of its own."""
