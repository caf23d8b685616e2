-- Finds, without a look at all the others, conversations that may hold up agents elsewhere: people are asked about files
-- that make programs run, a change was begun and is not done, or a process may have been killed.
CREATE INDEX states_with_programs ON states (conversation) WHERE strpos(progress, '"programs"') > 0;
CREATE INDEX states_with_owner ON states (conversation) WHERE owner IS NOT NULL;
CREATE INDEX changes_begun ON changes (conversation) WHERE finished IS NULL;
