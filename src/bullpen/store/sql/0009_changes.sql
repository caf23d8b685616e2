-- What changed in folders: in a turn, between two turns, or because a person took something back.
CREATE TABLE changes (
    number INTEGER PRIMARY KEY,
    conversation INTEGER NOT NULL REFERENCES conversations,
    sequence INTEGER NOT NULL,                   -- 1, 2, 3, … within its conversation, perhaps with gaps in a copy
    turn TEXT NOT NULL,                          -- the id of a turn, or nothing
    folder TEXT NOT NULL,
    after_message INTEGER NOT NULL,              -- how many messages there were
    finished INTEGER,                            -- 1, 2, 3, … in the order of becoming done; NULL: only begun
    is_copy INTEGER NOT NULL,                    -- whether it is from another conversation, where its turn is
    record BLOB NOT NULL,                        -- packed JSON: all of it but the patch, and the hash of the patch
    patch BLOB,                                  -- packed; NULL: there is none
    UNIQUE (conversation, sequence)
);
CREATE INDEX changes_after_messages ON changes (conversation, after_message);
CREATE INDEX changes_of_turns ON changes (conversation, turn);
CREATE INDEX changes_of_folders ON changes (conversation, folder, finished) WHERE is_copy = 0;
CREATE INDEX changes_as_they_finished ON changes (conversation, finished);
