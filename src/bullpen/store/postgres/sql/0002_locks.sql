-- When an owner last had its lock, by the server's clock: a start of the server since then has freed all locks.
ALTER TABLE states ADD COLUMN locked_at timestamptz;
