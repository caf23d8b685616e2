-- What agents asked before they did something, and what was answered: rows in a chain of hashes of their own.
CREATE TABLE approvals (
    number INTEGER PRIMARY KEY,
    conversation INTEGER NOT NULL REFERENCES conversations,
    sequence INTEGER NOT NULL,                   -- 1, 2, 3, … within its conversation
    turn TEXT NOT NULL,                          -- the id of the turn whose agent asked
    question TEXT NOT NULL,                      -- which of its questions
    is_answer INTEGER NOT NULL,                  -- 0: the question; 1: the answer to it
    after_message INTEGER NOT NULL,              -- how many messages there were
    record BLOB NOT NULL,                        -- packed JSON: all of it but the hash
    hash BLOB NOT NULL,                          -- SHA-256 over the hash before it, that of the last message, and the record
    is_open INTEGER NOT NULL,                    -- whether it is a question without an answer, of a turn of this conversation
    UNIQUE (conversation, sequence),
    UNIQUE (conversation, turn, question, is_answer)
);
CREATE INDEX approvals_after_messages ON approvals (conversation, after_message);
CREATE INDEX open_approvals ON approvals (conversation) WHERE is_open = 1;

-- Where that chain ends, so that its last rows cannot go missing unnoticed.
ALTER TABLE states ADD COLUMN approvals INTEGER NOT NULL DEFAULT 0;
ALTER TABLE states ADD COLUMN approvals_head BLOB;  -- NULL: it has not begun
