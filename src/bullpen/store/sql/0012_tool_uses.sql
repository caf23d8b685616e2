-- What an agent did in a turn with the tools that it was given.
ALTER TABLE turns ADD COLUMN uses BLOB;          -- packed JSON; NULL: nothing
