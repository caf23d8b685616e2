-- What people decided besides speaking, and who did. What was said has its speaker.
CREATE TABLE decisions (
    number INTEGER PRIMARY KEY,
    conversation INTEGER NOT NULL REFERENCES conversations,
    at INTEGER NOT NULL,
    person TEXT NOT NULL,
    choice TEXT NOT NULL,                        -- the command: continue, drop, retry, …
    turns TEXT NOT NULL                          -- the ids of the turns that it is about, a JSON array
);
CREATE INDEX decisions_of_conversations ON decisions (conversation);
