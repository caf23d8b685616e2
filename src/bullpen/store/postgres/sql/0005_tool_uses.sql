-- What an agent did in a turn with the tools that it was given.
ALTER TABLE turns ADD COLUMN uses bytea;         -- packed JSON, NULL: nothing
