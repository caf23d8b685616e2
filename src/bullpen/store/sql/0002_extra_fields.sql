-- Fields that other systems put into messages and snapshots, kept as they are: an object of JSON, or NULL.
ALTER TABLE messages ADD COLUMN extra TEXT;
ALTER TABLE conversations ADD COLUMN extra TEXT;
