"""A witness in the database: triggers of the test's own note who wrote what, whatever the product thinks of it."""

import psycopg

YOUNG = "interval '2 seconds'"
"""Who has said that it lives since then may not be given up."""
TRIGGERS = f"""
CREATE SCHEMA witness;
CREATE TABLE witness.claims (token text, who text);
CREATE TABLE witness.writes (conversation bigint, what text, token text, who text);
CREATE TABLE witness.wrongs (what text);
CREATE TABLE witness.ends (conversation text, turn text, kind text);

CREATE FUNCTION witness.claimed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO witness.claims VALUES (NEW.owner_token, current_setting('application_name'));
    RETURN NULL;
END $$;
CREATE TRIGGER witness AFTER UPDATE ON states FOR EACH ROW
    WHEN (NEW.owner_token IS NOT NULL AND OLD.owner_token IS DISTINCT FROM NEW.owner_token)
    EXECUTE FUNCTION witness.claimed();

CREATE FUNCTION witness.wrote() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO witness.writes SELECT NEW.conversation, TG_TABLE_NAME || ' ' || NEW.id, owner_token,
        current_setting('application_name') FROM states WHERE conversation = NEW.conversation;
    RETURN NULL;
END $$;
CREATE TRIGGER witness AFTER INSERT ON messages FOR EACH ROW EXECUTE FUNCTION witness.wrote();
CREATE TRIGGER witness AFTER INSERT OR UPDATE ON turns FOR EACH ROW EXECUTE FUNCTION witness.wrote();

CREATE FUNCTION witness.ended() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO witness.ends VALUES (NEW.conversation, NEW.turn, NEW.kind);
    INSERT INTO witness.wrongs SELECT 'late: a worker that was given up ended turn ' || NEW.turn
        FROM bullpen_cluster.runs r JOIN bullpen_cluster.processes p ON p.id = r.worker
        WHERE NEW.kind <> 'lost' AND r.conversation = NEW.conversation AND r.turn = NEW.turn AND p.ended_at IS NOT NULL;
    RETURN NULL;
END $$;
CREATE TRIGGER witness AFTER INSERT OR UPDATE ON bullpen_cluster.outcomes
    FOR EACH ROW EXECUTE FUNCTION witness.ended();

CREATE FUNCTION witness.given_up() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    -- Who leaves says so itself.
    INSERT INTO witness.wrongs SELECT 'living: ' || NEW.kind || ' ' || NEW.id || ' was given up though it said '
        || clock_timestamp() - OLD.beat_at || ' before that it lives' WHERE current_query() NOT LIKE '%leave_cluster%';
    RETURN NULL;
END $$;
CREATE TRIGGER witness AFTER UPDATE ON bullpen_cluster.processes FOR EACH ROW
    WHEN (OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL AND OLD.beat_at > clock_timestamp() - {YOUNG})
    EXECUTE FUNCTION witness.given_up();
"""
LATE = """
    SELECT w.what, w.who, c.who FROM witness.writes w JOIN witness.claims c USING (token) WHERE w.who <> c.who
"""


def install(url: str) -> None:
    """Put the witness where both stores' tables are."""
    with psycopg.connect(url) as connection:
        connection.execute(TRIGGERS.encode())


def late_writes(url: str) -> list[str]:
    """Return what somebody wrote into a conversation that was another one's then."""
    with psycopg.connect(url) as connection:
        rows = connection.execute(LATE.encode()).fetchall()
    return [f"late: {what} was written by {who!r}, and the owner was {owner!r}" for what, who, owner in rows]


def wrongs(url: str) -> list[str]:
    """Return what is wrong by itself."""
    with psycopg.connect(url) as connection:
        return [what for (what,) in connection.execute("SELECT what FROM witness.wrongs").fetchall()]


def ends(url: str) -> list[tuple[str, str, str]]:
    """Return every end of a turn: its conversation, its id, and how it ended."""
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT conversation, turn, kind FROM witness.ends").fetchall()
    return [(conversation, turn, kind) for conversation, turn, kind in rows]
