-- What agents asked before they did something, and what was answered: rows in a chain of hashes of their own.
CREATE TABLE approvals (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    conversation bigint NOT NULL REFERENCES conversations,
    sequence bigint NOT NULL,                    -- 1, 2, 3, … within its conversation
    turn text NOT NULL,                          -- the id of the turn whose agent asked
    question text NOT NULL,                      -- which of its questions
    is_answer smallint NOT NULL,                 -- 0: the question, 1: the answer to it
    after_message bigint NOT NULL,               -- how many messages there were
    record bytea NOT NULL,                       -- packed JSON: all of it but the hash
    hash bytea NOT NULL,                         -- SHA-256 over the hash before it, that of the last message, and the record
    is_open smallint NOT NULL,                   -- whether it is a question without an answer, of a turn of this conversation
    UNIQUE (conversation, sequence),
    UNIQUE (conversation, turn, question, is_answer)
);
CREATE INDEX approvals_after_messages ON approvals (conversation, after_message);
CREATE INDEX open_approvals ON approvals (conversation) WHERE is_open = 1;

-- Where that chain ends, so that its last rows cannot go missing unnoticed.
ALTER TABLE states ADD COLUMN approvals bigint NOT NULL DEFAULT 0;
ALTER TABLE states ADD COLUMN approvals_head bytea;  -- NULL: it has not begun
