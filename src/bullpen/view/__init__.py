"""What every door shows of a conversation, worked out once; the doors only render it."""
