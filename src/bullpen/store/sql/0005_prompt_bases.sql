-- A prompt mostly repeats the one that the same member got before: then only the difference is kept.
ALTER TABLE prompts ADD COLUMN base INTEGER REFERENCES turns;  -- whose prompt it differs from; NULL: it is complete
