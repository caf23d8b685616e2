-- One user's conversations. Times are milliseconds since 1970; "packed" is what packing.py makes of text or JSON.

CREATE TABLE migrations (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    -- The schema after this migration, so that opening the file finds out whether it is still the same.
    schema_sha256 BLOB NOT NULL
);

-- What hardly changes. A deleted conversation keeps its row, emptied, so that its id is never used again.
CREATE TABLE conversations (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    team TEXT NOT NULL,
    team_file BLOB NOT NULL,                     -- packed
    team_path TEXT NOT NULL,                     -- where the team file lies; it may move
    started_at INTEGER NOT NULL,
    deleted_at INTEGER,
    first_link BLOB NOT NULL,                    -- what the chain of hashes begins with
    team_task TEXT
);

-- What changes with every message, small enough to be written each time.
CREATE TABLE states (
    conversation INTEGER PRIMARY KEY REFERENCES conversations,
    messages INTEGER NOT NULL DEFAULT 0,
    head BLOB NOT NULL,                          -- the hash of the last message
    last_at INTEGER NOT NULL,
    waits_for TEXT,
    paused TEXT,
    progress TEXT NOT NULL DEFAULT '{}',         -- JSON
    owner TEXT                                   -- JSON
);

CREATE TABLE speakers (
    number INTEGER PRIMARY KEY,
    conversation INTEGER NOT NULL REFERENCES conversations,
    speaker TEXT NOT NULL,                       -- JSON
    UNIQUE (conversation, speaker)
);

CREATE TABLE messages (
    number INTEGER PRIMARY KEY,                  -- in the order of arrival, over all conversations
    conversation INTEGER NOT NULL REFERENCES conversations,
    sequence INTEGER NOT NULL,                   -- 1, 2, 3, … within its conversation
    id TEXT NOT NULL,
    speaker INTEGER NOT NULL,                    -- a row of speakers
    timestamp INTEGER NOT NULL,
    routing TEXT,                                -- a JSON array
    content NOT NULL,                            -- text, or packed where that is shorter
    hash BLOB NOT NULL,                          -- SHA-256 over the hash before it and all of the above
    UNIQUE (conversation, sequence),
    UNIQUE (conversation, id)
);

CREATE TABLE turns (
    number INTEGER PRIMARY KEY,
    conversation INTEGER NOT NULL REFERENCES conversations,
    id TEXT NOT NULL,
    member TEXT NOT NULL,
    asked_by INTEGER NOT NULL,                   -- the sequence of the message that asked for it
    intent INTEGER NOT NULL,
    step INTEGER NOT NULL,
    position INTEGER NOT NULL,                   -- the place in the queue
    state TEXT NOT NULL,
    retry_of INTEGER REFERENCES turns,
    owner TEXT,                                  -- the token of the process that runs it
    queued_at INTEGER NOT NULL,
    started_at INTEGER,
    ended_at INTEGER,
    reply INTEGER,                               -- the sequence of the message that it ended with
    usage BLOB,                                  -- packed JSON
    failure BLOB,                                -- packed JSON
    UNIQUE (conversation, id),
    CHECK (state IN ('queued', 'running', 'done', 'failed', 'cancelled', 'interrupted', 'dropped')),
    CHECK ((started_at IS NULL) = (state IN ('queued', 'dropped'))),
    CHECK ((started_at IS NULL) = (owner IS NULL)),
    CHECK ((ended_at IS NULL) = (state IN ('queued', 'running'))),
    CHECK ((reply IS NOT NULL) = (state = 'done'))
);

CREATE INDEX open_turns ON turns (conversation, position) WHERE ended_at IS NULL;
CREATE INDEX turns_of_messages ON turns (conversation, asked_by);
CREATE UNIQUE INDEX retries ON turns (retry_of) WHERE retry_of IS NOT NULL;

-- What an agent was given. Written when its turn starts and never again, for it may be large.
CREATE TABLE prompts (
    turn INTEGER PRIMARY KEY REFERENCES turns,
    prompt BLOB NOT NULL,                        -- packed
    system BLOB,                                 -- packed
    report BLOB NOT NULL                         -- packed JSON
);

-- What came back. Written when its turn ends.
CREATE TABLE streams (
    turn INTEGER PRIMARY KEY REFERENCES turns,
    command BLOB NOT NULL,                       -- packed JSON: the command line, and whether the stream was cut
    stream BLOB                                  -- packed
);

-- The words of messages, under their numbers. search.py makes the words, so the tokenizer only splits at spaces.
CREATE VIRTUAL TABLE said USING fts5 (words, content = '', detail = none, columnsize = 0, tokenize = 'ascii');

-- The last message whose words are in there. It costs less to put in many at once.
CREATE TABLE indexed (
    number INTEGER NOT NULL
);
INSERT INTO indexed VALUES (0);
