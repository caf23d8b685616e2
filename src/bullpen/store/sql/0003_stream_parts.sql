-- What a running turn has written so far, in parts: it is read after a crash, and removed when the turn ends.
CREATE TABLE stream_parts (
    number INTEGER PRIMARY KEY,
    turn INTEGER NOT NULL REFERENCES turns,
    data BLOB NOT NULL                           -- packed
);
CREATE INDEX parts_of_turns ON stream_parts (turn);
CREATE INDEX unanswered_turns ON turns (conversation, ended_at) WHERE state IN ('failed', 'cancelled', 'interrupted');
