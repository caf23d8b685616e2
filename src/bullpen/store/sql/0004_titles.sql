-- What a person calls a conversation, and since when it is out of the way; NULL: neither.
ALTER TABLE conversations ADD COLUMN title TEXT;
ALTER TABLE conversations ADD COLUMN archived_at INTEGER;
