-- What a running turn has written so far, in parts: it is read after a crash, and removed when the turn ends.
CREATE TABLE stream_parts (
    number INTEGER PRIMARY KEY,
    turn INTEGER NOT NULL REFERENCES turns,
    data BLOB NOT NULL                           -- packed
);
CREATE INDEX parts_of_turns ON stream_parts (turn);

-- How many messages there were when a turn ended without a reply: that is its place between them.
ALTER TABLE turns ADD COLUMN after_message INTEGER;
UPDATE turns SET after_message = asked_by WHERE state IN ('failed', 'cancelled', 'interrupted');
CREATE INDEX unanswered_turns ON turns (conversation, after_message) WHERE after_message IS NOT NULL;
