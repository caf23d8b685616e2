-- Who joins and does not say yet that it lives, and what an owner that is not one any more asks for.

-- Equal in a process that has only joined.
ALTER TABLE processes ALTER began_at SET DEFAULT now(), ALTER beat_at SET DEFAULT now();

-- Gives up those of whom nothing is heard: a dead one holds no lock, a frozen one does. Everybody is late after the
-- server was away, and a session does not outlive that: in one that has just begun nobody is given up. Who has only
-- joined takes nothing before its first beat, and has more time for that. Who asks for this lives. All nodes do it; no
-- lock keeps them apart that anybody else in the database could hold.
DROP FUNCTION reap(interval, interval, interval);
CREATE FUNCTION reap(by_node bigint, stale_after interval, gone_after interval, spared_for interval)
RETURNS SETOF bigint LANGUAGE plpgsql AS $$
DECLARE
    found bigint;
BEGIN
    IF EXISTS (SELECT FROM pg_stat_activity WHERE pid = pg_backend_pid()
               AND backend_start > clock_timestamp() - spared_for)
        OR EXISTS (SELECT FROM processes p WHERE p.id = by_node AND p.ended_at IS NOT NULL) THEN
        RETURN;
    END IF;
    FOR found IN SELECT p.id FROM processes p WHERE p.ended_at IS NULL AND p.id <> by_node
        AND (p.beat_at <> p.began_at OR p.began_at < clock_timestamp() - 3 * spared_for)
        AND is_stale(p, stale_after, gone_after) FOR UPDATE SKIP LOCKED LOOP
        PERFORM give_up(found);
        RETURN NEXT found;
    END LOOP;
    DELETE FROM orders WHERE (conversation, turn) IN (
        SELECT o.conversation, o.turn FROM orders o JOIN outcomes e USING (conversation, turn)
            WHERE e.at < clock_timestamp() - interval '1 day' FOR UPDATE OF o SKIP LOCKED);
    DELETE FROM processes WHERE id IN (
        SELECT p.id FROM processes p WHERE p.ended_at < clock_timestamp() - interval '1 day'
            AND NOT EXISTS (SELECT FROM runs r WHERE r.worker = p.id) FOR UPDATE SKIP LOCKED);
END
$$;

-- Orders, for nodes. What a node asks for that was given up, or whose order another one has adopted, is refused: it may
-- have asked long ago, on a connection that was slow.

CREATE FUNCTION is_living(node bigint) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM processes p WHERE p.id = node AND p.ended_at IS NULL)
$$;

-- Asks for the end of an order, whoever placed it; one that does not run has ended with that.
CREATE FUNCTION request_end(of_conversation text, of_turn text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    of_job bigint;
    by_worker bigint;
BEGIN
    SELECT job INTO of_job FROM orders WHERE conversation = of_conversation AND turn = of_turn FOR UPDATE;
    IF NOT FOUND OR EXISTS (SELECT FROM outcomes WHERE conversation = of_conversation AND turn = of_turn) THEN
        RETURN;
    END IF;
    SELECT worker INTO by_worker FROM runs WHERE conversation = of_conversation AND turn = of_turn;
    IF FOUND THEN
        PERFORM procrastinate_cancel_job_v1(of_job, true, false);
        PERFORM pg_notify('bullpen_cancel', by_worker::text);
    ELSE
        PERFORM end_turn(of_conversation, of_turn, 'cancelled', '');
    END IF;
END
$$;

-- Removes an order, whoever placed it. Nobody wants it any more, so what has not ended is cancelled.
CREATE FUNCTION remove_order(of_conversation text, of_turn text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM outcomes WHERE conversation = of_conversation AND turn = of_turn) THEN
        -- If a crash loses that, it is done a day later.
        PERFORM not_synced();
    ELSE
        PERFORM request_end(of_conversation, of_turn);
    END IF;
    DELETE FROM orders o WHERE o.conversation = of_conversation AND o.turn = of_turn
        AND EXISTS (SELECT FROM outcomes e WHERE e.conversation = of_conversation AND e.turn = of_turn);
END
$$;

-- Does that with all orders of a conversation but those of turns that still run.
CREATE FUNCTION remove_orders(of_conversation text, running text[]) RETURNS void
LANGUAGE plpgsql SET search_path = bullpen_cluster, pg_temp AS $$
DECLARE
    before text := current_setting('synchronous_commit');
BEGIN
    PERFORM remove_order(o.conversation, o.turn) FROM orders o
        WHERE o.conversation = of_conversation AND NOT o.is_errand AND o.turn <> ALL (running);
    -- What else the transaction does may be to be on disk.
    PERFORM set_config('synchronous_commit', before, true);
END
$$;

-- Locks an order, and returns whether it is one of this node.
CREATE FUNCTION is_order_of(by_node bigint, of_conversation text, of_turn text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM orders o WHERE o.conversation = of_conversation AND o.turn = of_turn AND o.owner = by_node
        AND is_living(by_node) FOR NO KEY UPDATE;
    RETURN FOUND;
END
$$;

DROP FUNCTION cancel_order(text, text);
CREATE FUNCTION cancel_order(by_node bigint, of_conversation text, of_turn text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF NOT is_order_of(by_node, of_conversation, of_turn) THEN
        RETURN false;
    END IF;
    PERFORM request_end(of_conversation, of_turn);
    RETURN true;
END
$$;

-- Removes the order of a turn whose end is stored.
DROP FUNCTION settle_order(text, text);
CREATE FUNCTION settle_order(by_node bigint, of_conversation text, of_turn text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF is_order_of(by_node, of_conversation, of_turn) THEN
        PERFORM remove_order(of_conversation, of_turn);
    END IF;
END
$$;

-- For a new owner: the one before it may have died before it did so.
DROP FUNCTION settle_others(text, text[]);
CREATE FUNCTION settle_others(by_node bigint, of_conversation text, running text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF is_living(by_node) THEN
        PERFORM remove_orders(of_conversation, running);
    END IF;
END
$$;

-- Makes an order one of this node. Returns whether that lives, and the order, if there is one.
CREATE FUNCTION adopt_order(by_node bigint, of_conversation text, of_turn text)
RETURNS TABLE (lives boolean, token text, worker text, work bytea, notes bytea) LANGUAGE plpgsql AS $$
BEGIN
    IF NOT is_living(by_node) THEN
        RETURN QUERY SELECT false, ''::text, ''::text, ''::bytea, ''::bytea;
        RETURN;
    END IF;
    RETURN QUERY UPDATE orders o SET owner = by_node WHERE o.conversation = of_conversation AND o.turn = of_turn
        RETURNING true, o.token, o.worker, o.work, o.notes;
END
$$;

-- Leaves a word for the agent of a turn that has not ended. The lock makes one wait for the other: the worker reads what
-- comes after the last one that it has. Left again, it is the same word.
DROP FUNCTION leave_word(text, text, text, bytea);
CREATE FUNCTION leave_word(by_node bigint, of_conversation text, of_turn text, of_word text, said bytea) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF is_order_of(by_node, of_conversation, of_turn) AND NOT EXISTS (
        SELECT FROM outcomes WHERE conversation = of_conversation AND turn = of_turn) THEN
        INSERT INTO words SELECT of_conversation, of_turn, 1 + count(*), of_word, said FROM words
            WHERE conversation = of_conversation AND turn = of_turn ON CONFLICT DO NOTHING;
        PERFORM pg_notify('bullpen_words', of_conversation || ' ' || of_turn);
    END IF;
END
$$;

-- Lets every worker of its pool take an order that one of them was to have and has not taken.
DROP FUNCTION open_order(text, text);
CREATE FUNCTION open_order(by_node bigint, of_conversation text, of_turn text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    -- The job first, as where orders are handed out.
    UPDATE procrastinate_jobs j SET queue_name = o.pool FROM orders o
        WHERE o.conversation = of_conversation AND o.turn = of_turn AND o.worker <> '' AND NOT o.is_errand
        AND o.owner = by_node AND is_living(by_node) AND j.id = o.job AND j.status = 'todo';
    IF FOUND THEN
        UPDATE orders SET worker = '' WHERE conversation = of_conversation AND turn = of_turn;
    END IF;
END
$$;

-- Ends the errands of a conversation that another owner ordered and that have not begun. Returns those that have.
DROP FUNCTION errands_left(text, bigint);
CREATE FUNCTION errands_left(by_node bigint, of_conversation text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    called text;
BEGIN
    FOR called IN SELECT o.turn FROM orders o WHERE o.conversation = of_conversation AND o.is_errand
        AND o.owner <> by_node AND is_living(by_node) LOOP
        PERFORM request_end(of_conversation, called);
        IF EXISTS (SELECT FROM outcomes e WHERE e.conversation = of_conversation AND e.turn = called) THEN
            DELETE FROM orders o WHERE o.conversation = of_conversation AND o.turn = called;
        ELSE
            RETURN NEXT called;
        END IF;
    END LOOP;
END
$$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA bullpen_cluster FROM PUBLIC;
