-- The next turn's number is one more than the highest, found at once.
CREATE INDEX turn_numbers ON turns (conversation, CAST(id AS INTEGER));
