-- What commands of the team file said that ran after turns which changed files.
CREATE TABLE checks (
    number INTEGER PRIMARY KEY,
    conversation INTEGER NOT NULL REFERENCES conversations,
    sequence INTEGER NOT NULL,                   -- 1, 2, 3, … within its conversation, perhaps with gaps in a copy
    turn TEXT NOT NULL,                          -- the id of the turn that changed the files
    after_message INTEGER NOT NULL,              -- how many messages there were
    is_running INTEGER NOT NULL,                 -- whether it has not ended, as far as is known
    is_copy INTEGER NOT NULL,                    -- whether it is from another conversation, where its turn is
    record BLOB NOT NULL,                        -- packed JSON: all of it
    UNIQUE (conversation, sequence)
);
CREATE INDEX checks_after_messages ON checks (conversation, after_message);
CREATE INDEX checks_of_turns ON checks (conversation, turn);
CREATE INDEX running_checks ON checks (conversation) WHERE is_running = 1;
