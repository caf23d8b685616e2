-- An agent's own CLI session after a turn that ended well, and what the model has seen in it. The last one of a member
-- is where its next turn goes on.
CREATE TABLE memories (
    number INTEGER PRIMARY KEY,
    turn INTEGER NOT NULL UNIQUE REFERENCES turns,
    conversation INTEGER NOT NULL REFERENCES conversations,
    member TEXT NOT NULL,
    memory BLOB NOT NULL                         -- packed JSON
);
CREATE INDEX memories_of_members ON memories (conversation, member);
