-- The conversations of many people and machines. The tables mean what those of SQLite mean, in store/sql; "packed" is
-- what packing.py makes of text or JSON. Times are milliseconds since 1970.

-- What hardly changes. A deleted conversation keeps its row, emptied, so that its id is never used again.
CREATE TABLE conversations (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text NOT NULL UNIQUE,
    team text NOT NULL,
    team_file bytea NOT NULL,                    -- packed
    team_path text NOT NULL,
    started_at bigint NOT NULL,
    deleted_at bigint,
    first_link bytea NOT NULL,                   -- what the chain of hashes begins with
    team_task text,
    extra text,                                  -- fields of other systems, a JSON object
    title text,
    archived_at bigint
);

-- What changes with every message. Whoever writes in a conversation locks its row first, and is its owner.
CREATE TABLE states (
    conversation bigint PRIMARY KEY REFERENCES conversations,
    messages bigint NOT NULL DEFAULT 0,
    head bytea NOT NULL,                         -- the hash of the last message
    last_at bigint NOT NULL,
    waits_for text,
    paused text,
    progress text NOT NULL DEFAULT '{}',         -- JSON
    owner text,                                  -- JSON
    owner_token text,                            -- the token in it
    CHECK ((owner IS NULL) = (owner_token IS NULL))
) WITH (fillfactor = 80);
CREATE INDEX owners ON states (owner_token) WHERE owner_token IS NOT NULL;

CREATE TABLE speakers (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    conversation bigint NOT NULL REFERENCES conversations,
    speaker text NOT NULL                        -- JSON
);
-- An index cannot hold names of any length, but their hashes.
CREATE UNIQUE INDEX speakers_once ON speakers (conversation, md5(speaker));

CREATE TABLE messages (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    conversation bigint NOT NULL REFERENCES conversations,
    sequence bigint NOT NULL,                    -- 1, 2, 3, … within its conversation
    id text NOT NULL,
    speaker bigint NOT NULL,                     -- a row of speakers
    timestamp bigint NOT NULL,
    routing text,                                -- a JSON array
    extra text,                                  -- fields of other systems, a JSON object
    content bytea NOT NULL,                      -- UTF-8, which may have the character 0, which text may not
    hash bytea NOT NULL,                         -- SHA-256 over the hash before it and all of the above
    words tsvector,                              -- the words that find it, made by search.py; NULL: too many
    UNIQUE (conversation, sequence),
    UNIQUE (conversation, id)
);
CREATE INDEX said ON messages USING gin (words);
CREATE INDEX said_at_length ON messages (number) WHERE words IS NULL;

CREATE TABLE turns (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    conversation bigint NOT NULL REFERENCES conversations,
    id text NOT NULL,
    member text NOT NULL,
    asked_by bigint NOT NULL,                    -- the sequence of the message that asked for it
    intent integer NOT NULL,
    step integer NOT NULL,
    position bigint NOT NULL,                    -- the place in the queue
    state text NOT NULL,
    retry_of bigint REFERENCES turns,
    owner text,                                  -- the token of the process that runs it
    queued_at bigint NOT NULL,
    started_at bigint,
    ended_at bigint,
    reply bigint,                                -- the sequence of the message that it ended with
    usage bytea,                                 -- packed JSON
    failure bytea,                               -- packed JSON
    after_message bigint,                        -- how many messages there were when it ended without a reply
    UNIQUE (conversation, id),
    CHECK (state IN ('queued', 'running', 'done', 'failed', 'cancelled', 'interrupted', 'dropped')),
    CHECK ((started_at IS NULL) = (state IN ('queued', 'dropped'))),
    CHECK ((started_at IS NULL) = (owner IS NULL)),
    CHECK ((ended_at IS NULL) = (state IN ('queued', 'running'))),
    CHECK ((reply IS NOT NULL) = (state = 'done'))
);
CREATE INDEX open_turns ON turns (conversation, position) WHERE ended_at IS NULL;
CREATE INDEX turns_of_messages ON turns (conversation, asked_by);
CREATE INDEX unanswered_turns ON turns (conversation, after_message) WHERE after_message IS NOT NULL;
CREATE UNIQUE INDEX retries ON turns (retry_of) WHERE retry_of IS NOT NULL;
-- The next turn's number is one more than the highest, found at once.
CREATE INDEX turn_numbers ON turns (conversation, (CASE WHEN id ~ '^[0-9]{1,18}$' THEN id::bigint ELSE 0 END));

-- What an agent was given; mostly the difference from what the same member got before.
CREATE TABLE prompts (
    turn bigint PRIMARY KEY REFERENCES turns,
    prompt bytea NOT NULL,                       -- packed
    system bytea,                                -- packed
    report bytea NOT NULL,                       -- packed JSON
    base bigint REFERENCES turns                 -- whose prompt it differs from; NULL: it is complete
);

-- What came back. Written when its turn ends; what a running turn has written so far is in the parts.
CREATE TABLE streams (
    turn bigint PRIMARY KEY REFERENCES turns,
    command bytea NOT NULL,                      -- packed JSON: the command line, and whether the stream was cut
    stream bytea                                 -- packed
);
CREATE TABLE stream_parts (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    turn bigint NOT NULL REFERENCES turns,
    data bytea NOT NULL                          -- packed
);
CREATE INDEX parts_of_turns ON stream_parts (turn);

-- An agent's own CLI session after a turn that ended well, and what the model has seen in it.
CREATE TABLE memories (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    turn bigint NOT NULL UNIQUE REFERENCES turns,
    conversation bigint NOT NULL REFERENCES conversations,
    member text NOT NULL,
    memory bytea NOT NULL                        -- packed JSON
);
CREATE INDEX memories_of_members ON memories (conversation, member);

CREATE TABLE decisions (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    conversation bigint NOT NULL REFERENCES conversations,
    at bigint NOT NULL,
    person text NOT NULL,
    choice text NOT NULL,                        -- the command: continue, drop, retry, …
    turns text NOT NULL                          -- the ids of the turns that it is about, a JSON array
);
CREATE INDEX decisions_of_conversations ON decisions (conversation);

-- What changed in folders: in a turn, between two turns, or because a person took something back.
CREATE TABLE changes (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    conversation bigint NOT NULL REFERENCES conversations,
    sequence bigint NOT NULL,                    -- 1, 2, 3, … within its conversation, perhaps with gaps in a copy
    turn text NOT NULL,                          -- the id of a turn, or nothing
    folder text NOT NULL,
    after_message bigint NOT NULL,               -- how many messages there were
    finished bigint,                             -- 1, 2, 3, … in the order of becoming done; NULL: only begun
    is_copy smallint NOT NULL,                   -- whether it is from another conversation, where its turn is
    record bytea NOT NULL,                       -- packed JSON: all of it but the patch, and the hash of the patch
    patch bytea,                                 -- packed; NULL: there is none
    UNIQUE (conversation, sequence)
);
CREATE INDEX changes_after_messages ON changes (conversation, after_message);
CREATE INDEX changes_of_turns ON changes (conversation, turn);
CREATE INDEX changes_as_they_finished ON changes (conversation, finished);

-- What commands of the team file said that ran after turns which changed files.
CREATE TABLE checks (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    conversation bigint NOT NULL REFERENCES conversations,
    sequence bigint NOT NULL,                    -- 1, 2, 3, … within its conversation, perhaps with gaps in a copy
    turn text NOT NULL,                          -- the id of the turn that changed the files
    after_message bigint NOT NULL,               -- how many messages there were
    is_running smallint NOT NULL,                -- whether it has not ended, as far as is known
    is_copy smallint NOT NULL,                   -- whether it is from another conversation, where its turn is
    record bytea NOT NULL,                       -- packed JSON: all of it
    UNIQUE (conversation, sequence)
);
CREATE INDEX checks_after_messages ON checks (conversation, after_message);
CREATE INDEX checks_of_turns ON checks (conversation, turn);
