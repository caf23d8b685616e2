-- Orders to pools of workers. All of it is in the schema bullpen_cluster, beside the tables of procrastinate.
--
-- Workers reach nothing but functions, which look at who is connected (session_user) and at its pools. A notification
-- only wakes somebody: what is true is in the tables, for anybody in the database may send one.

CREATE TABLE processes (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind text NOT NULL CHECK (kind IN ('node', 'worker')),
    name text NOT NULL CHECK (length(name) <= 255),
    role name NOT NULL DEFAULT session_user,
    address text NOT NULL DEFAULT '',
    pools text[] NOT NULL DEFAULT '{}' CHECK (cardinality(pools) <= 1000),
    -- All nodes read it of all workers.
    announced bytea NOT NULL DEFAULT '' CHECK (octet_length(announced) <= 1024 * 1024),
    engine bigint,
    -- Of a worker: the number of the last attempt to take an order that was given one.
    attempt bigint NOT NULL DEFAULT 0,
    -- Of a node: where others pass requests on to it, what they show there, and where people find it.
    passage text NOT NULL DEFAULT '',
    secret text NOT NULL DEFAULT '',
    url text NOT NULL DEFAULT '',
    began_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    beat_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at timestamptz
);
CREATE INDEX processes_alive ON processes (kind) WHERE ended_at IS NULL;

-- Who has access to the pages of all nodes, as bullpen.web.sessions writes it; workers cannot read it.
CREATE TABLE access (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    cluster text NOT NULL DEFAULT left(gen_random_uuid()::text, 8),
    version bigint NOT NULL DEFAULT 0,
    record bytea NOT NULL DEFAULT ''
);
INSERT INTO access DEFAULT VALUES;

CREATE TABLE orders (
    conversation text NOT NULL,
    turn text NOT NULL,
    pool text NOT NULL,
    worker text NOT NULL DEFAULT '',  -- The name of the only one that may take it.
    is_errand boolean NOT NULL DEFAULT false,  -- It is not a turn, but something to be done where a folder is.
    work bytea NOT NULL,
    -- For whoever owns the conversation when the turn ends; workers do not get it.
    notes bytea NOT NULL DEFAULT '',
    token text NOT NULL,
    owner bigint,
    job bigint,
    placed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (conversation, turn)
);

-- A turn runs at most once, whatever is delivered twice.
CREATE TABLE runs (
    conversation text NOT NULL,
    turn text NOT NULL,
    worker bigint NOT NULL REFERENCES processes,
    attempt bigint NOT NULL,
    began_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (conversation, turn),
    UNIQUE (worker, attempt),
    FOREIGN KEY (conversation, turn) REFERENCES orders ON DELETE CASCADE
);

-- Where what an agent says goes: to the owner that is alive.
CREATE VIEW listeners AS
    SELECT o.conversation, o.turn, p.address, o.token FROM orders o JOIN processes p ON p.id = o.owner
    WHERE p.ended_at IS NULL;

-- A turn has one end, whoever is first: the worker with what the agent said, or the reaper.
CREATE TABLE outcomes (
    conversation text NOT NULL,
    turn text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('ended', 'cancelled', 'lost')),
    result bytea NOT NULL DEFAULT '' CHECK (octet_length(result) <= 512 * 1024 * 1024),
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (conversation, turn),
    FOREIGN KEY (conversation, turn) REFERENCES orders ON DELETE CASCADE
);

-- Where a worker cannot connect to the owner: what the agent says, until it is read. Lost in a crash, as any line.
CREATE UNLOGGED TABLE lines (
    conversation text NOT NULL,
    turn text NOT NULL,
    number bigint NOT NULL,
    line bytea NOT NULL,
    PRIMARY KEY (conversation, turn, number),
    FOREIGN KEY (conversation, turn) REFERENCES orders ON DELETE CASCADE
);

-- What people say to an agent, for the worker that runs it.
CREATE TABLE words (
    conversation text NOT NULL,
    turn text NOT NULL,
    number bigint NOT NULL,
    hash text NOT NULL,
    word bytea NOT NULL,
    PRIMARY KEY (conversation, turn, number),
    UNIQUE (conversation, turn, hash),
    FOREIGN KEY (conversation, turn) REFERENCES orders ON DELETE CASCADE
);

CREATE TABLE pool_roles (
    role name NOT NULL,
    pool text NOT NULL,
    PRIMARY KEY (role, pool)
);

CREATE FUNCTION is_node() RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT pg_has_role(session_user, nspowner, 'MEMBER') FROM pg_namespace WHERE nspname = 'bullpen_cluster'
$$;

-- Lets the transaction not wait for the disk: a crash of the server may lose it. It is not a setting of functions, since
-- those end with the function, before the commit.
CREATE FUNCTION not_synced() RETURNS void LANGUAGE sql AS $$
    SELECT set_config('synchronous_commit', 'off', true)
$$;

CREATE FUNCTION check_pools(wanted text[]) RETURNS void LANGUAGE plpgsql STABLE AS $$
DECLARE
    foreign_pool text;
BEGIN
    IF is_node() THEN
        RETURN;
    END IF;
    SELECT one INTO foreign_pool FROM unnest(wanted) AS given (one)
        WHERE NOT EXISTS (SELECT FROM pool_roles p WHERE p.role = session_user AND p.pool = given.one) LIMIT 1;
    IF FOUND THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('the role %s may not serve the pool %s', session_user, foreign_pool),
            HINT = format('Somebody who owns the tables can let it: SELECT bullpen_cluster.let_serve(%L, %L)',
                          session_user, foreign_pool);
    END IF;
END
$$;

CREATE FUNCTION check_process(process bigint) RETURNS void LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM processes WHERE id = process AND role = session_user) THEN
        RAISE insufficient_privilege USING MESSAGE = format('%s is not a process of the role %s', process, session_user);
    END IF;
END
$$;

-- The queue of an order. A worker has two of its own in each pool: names of pools begin with a letter or a digit.
CREATE FUNCTION queue_of(of_pool text, of_worker text, of_errands boolean) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN of_worker = '' THEN of_pool ELSE CASE WHEN of_errands THEN '!' ELSE '@' END
        || left(encode(sha256(convert_to(of_pool || '@' || of_worker, 'UTF8')), 'hex'), 32) END
$$;

-- An order is a job of procrastinate in the same commit.
CREATE FUNCTION defer_order() RETURNS trigger LANGUAGE plpgsql SET search_path = bullpen_cluster, pg_temp AS $$
BEGIN
    UPDATE orders SET job = (procrastinate_defer_jobs_v1(ARRAY[ROW(
        queue_of(NEW.pool, NEW.worker, NEW.is_errand), 'bullpen.turn', NEW.is_errand::integer, NULL, NULL,
        jsonb_build_object('conversation', NEW.conversation, 'turn', NEW.turn), NULL
    )]::procrastinate_job_to_defer_v1[]))[1]
    WHERE conversation = NEW.conversation AND turn = NEW.turn;
    RETURN NULL;
END
$$;
CREATE TRIGGER defer_order AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION defer_order();

CREATE FUNCTION finish_job(finished bigint) RETURNS void LANGUAGE sql AS $$
    SELECT procrastinate_finish_job_v1(id, 'succeeded', true) FROM procrastinate_jobs
        WHERE id = finished AND status IN ('todo', 'doing')
$$;

CREATE FUNCTION end_turn(of_conversation text, of_turn text, how text, what bytea) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    of_job bigint;
BEGIN
    SELECT job INTO of_job FROM orders WHERE conversation = of_conversation AND turn = of_turn FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO outcomes (conversation, turn, kind, result) VALUES (of_conversation, of_turn, how, what)
        ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM finish_job(of_job);
    PERFORM pg_notify('bullpen_outcome', of_conversation || ' ' || of_turn);
    RETURN true;
END
$$;

-- Which version of these scripts made the tables, for workers, which cannot read the table.
CREATE FUNCTION made_by_version() RETURNS integer
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = bullpen_cluster, pg_temp AS $$
    SELECT number FROM version
$$;

-- Processes.

CREATE FUNCTION join_cluster(of_kind text, called text, at_address text, of_pools text[], says bytea)
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = bullpen_cluster, pg_temp AS $$
DECLARE
    engine_id bigint;
    joined bigint;
BEGIN
    PERFORM check_pools(of_pools);
    IF of_kind = 'node' AND NOT is_node() THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('the role %s may not be a node', session_user),
            HINT = 'Use the role that owns the tables.';
    END IF;
    IF of_kind = 'worker' THEN
        SELECT worker_id INTO engine_id FROM procrastinate_register_worker_v1();
    END IF;
    INSERT INTO processes (kind, name, address, pools, announced, engine)
        VALUES (of_kind, called, at_address, of_pools, says, engine_id) RETURNING id INTO joined;
    PERFORM pg_notify('bullpen_processes', joined::text);
    RETURN joined;
END
$$;

-- Whether a worker lives that has this name, and one of these pools: what belongs to the files or sessions of the one
-- must not reach another. A dead one holds no lock; one that has just joined may not hold it yet.
CREATE FUNCTION is_taken(called text, of_pools text[]) RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = bullpen_cluster, pg_temp AS $$
BEGIN
    PERFORM check_pools(of_pools);
    RETURN EXISTS (
        SELECT FROM processes p WHERE p.kind = 'worker' AND p.ended_at IS NULL AND p.name = called AND p.pools && of_pools
        AND (p.began_at > clock_timestamp() - interval '1 second'
            OR NOT is_stale(p, interval '5 seconds', interval '0 seconds'))
    );
END
$$;

-- Says that a process is alive, and returns which of its turns somebody wants to end; nothing if it was given up.
CREATE FUNCTION beat(process bigint) RETURNS TABLE (conversation text, turn text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = bullpen_cluster, pg_temp AS $$
DECLARE
    engine_id bigint;
BEGIN
    PERFORM not_synced();
    PERFORM check_process(process);
    UPDATE processes SET beat_at = clock_timestamp() WHERE id = process AND ended_at IS NULL
        RETURNING engine INTO engine_id;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    PERFORM procrastinate_update_heartbeat_v1(engine_id) WHERE engine_id IS NOT NULL;
    RETURN QUERY SELECT NULL::text, NULL::text;
    RETURN QUERY SELECT o.conversation, o.turn FROM runs r JOIN orders o USING (conversation, turn)
        JOIN procrastinate_jobs j ON j.id = o.job WHERE r.worker = process AND j.abort_requested;
END
$$;

CREATE FUNCTION give_up(process bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    engine_id bigint;
BEGIN
    UPDATE processes SET ended_at = clock_timestamp() WHERE id = process AND ended_at IS NULL
        RETURNING engine INTO engine_id;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    PERFORM end_turn(r.conversation, r.turn, 'lost', '') FROM runs r WHERE r.worker = process
        AND NOT EXISTS (SELECT FROM outcomes o WHERE o.conversation = r.conversation AND o.turn = r.turn);
    -- What it was handed out without having begun it may be handed out again.
    PERFORM procrastinate_retry_job_v2(j.id, now(), NULL, NULL, NULL) FROM procrastinate_jobs j
        JOIN orders o ON o.job = j.id WHERE j.worker_id = engine_id AND j.status = 'doing'
        AND NOT EXISTS (SELECT FROM runs r WHERE r.conversation = o.conversation AND r.turn = o.turn);
    PERFORM procrastinate_unregister_worker_v1(engine_id) WHERE engine_id IS NOT NULL;
    -- A frozen node still holds the locks of its conversations: without its sessions, others can have them.
    -- Anybody may call themselves so; those of other roles are not ours to end, and to try would fail.
    PERFORM pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'bullpen node ' || process AND pid <> pg_backend_pid()
        AND pg_has_role(current_user, usesysid, 'USAGE');
    PERFORM pg_notify('bullpen_processes', process::text);
END
$$;

CREATE FUNCTION leave_cluster(process bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = bullpen_cluster, pg_temp AS $$
BEGIN
    PERFORM check_process(process);
    PERFORM give_up(process);
END
$$;

CREATE FUNCTION is_stale(process processes, stale_after interval, gone_after interval) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT process.beat_at < clock_timestamp() - stale_after OR (
        process.beat_at < clock_timestamp() - gone_after AND NOT EXISTS (
            SELECT FROM pg_locks WHERE locktype = 'advisory' AND database = (
                SELECT oid FROM pg_database WHERE datname = current_database()
            ) AND classid = 1651864944 AND objid = process.id AND objsubid = 2 AND granted
        )
    )
$$;

-- Gives up those of whom nothing is heard: a dead one holds no lock, a frozen one does. After a restart of the server
-- everybody is late, so nobody is given up for a while. All nodes do this; no lock keeps them apart that anybody else in
-- the database could hold.
CREATE FUNCTION reap(stale_after interval, gone_after interval, spared_for interval) RETURNS SETOF bigint LANGUAGE plpgsql AS $$
DECLARE
    found bigint;
BEGIN
    IF pg_postmaster_start_time() > clock_timestamp() - spared_for THEN
        RETURN;
    END IF;
    FOR found IN SELECT p.id FROM processes p WHERE p.ended_at IS NULL AND is_stale(p, stale_after, gone_after)
        FOR UPDATE SKIP LOCKED LOOP
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

-- Orders, for workers.

-- Hands out an order and notes that it runs, in one commit. Asked again with the same attempt, it is the same order.
-- A worker numbers its attempts. What it asked on a connection that is gone may be done late, when it has the order from
-- another one, and that has even ended: then nobody waits for an answer, and nothing is handed out.
CREATE FUNCTION next_order(by_worker bigint, with_attempt bigint, only_errands boolean)
RETURNS TABLE (conversation text, turn text, pool text, work bytea, address text, token text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = bullpen_cluster, pg_temp AS $$
DECLARE
    me processes;
    queues text[];
    is_any boolean;
    given procrastinate_jobs;
    ordered orders;
BEGIN
    PERFORM check_process(by_worker);
    SELECT * INTO me FROM processes p WHERE p.id = by_worker;
    queues := ARRAY(SELECT queue_of(one, me.name, true) FROM unnest(me.pools) AS of_mine (one));
    IF NOT only_errands THEN
        queues := queues || me.pools
            || ARRAY(SELECT queue_of(one, me.name, false) FROM unnest(me.pools) AS of_mine (one));
    END IF;
    is_any := EXISTS (SELECT FROM procrastinate_jobs j WHERE j.status = 'todo' AND j.queue_name = ANY (queues));
    -- Before its attempt is read: what is not there any more may be what this attempt was given.
    IF is_any THEN
        SELECT * INTO me FROM processes p WHERE p.id = by_worker AND p.ended_at IS NULL FOR NO KEY UPDATE;
    ELSE
        -- Most look for nothing. A lock would be written, and waited for on the disk.
        SELECT * INTO me FROM processes p WHERE p.id = by_worker AND p.ended_at IS NULL;
    END IF;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF with_attempt <= me.attempt THEN
        RETURN QUERY SELECT o.conversation, o.turn, o.pool, o.work, l.address, l.token
            FROM runs r JOIN orders o USING (conversation, turn) LEFT JOIN listeners l USING (conversation, turn)
            WHERE r.worker = by_worker AND r.attempt = with_attempt;
        RETURN;
    END IF;
    WHILE is_any LOOP
        given := procrastinate_fetch_job_v2(queues, me.engine);
        IF given.id IS NULL THEN
            RETURN;
        END IF;
        SELECT * INTO ordered FROM orders o WHERE o.conversation = given.args->>'conversation'
            AND o.turn = given.args->>'turn' FOR UPDATE;
        IF FOUND AND NOT EXISTS (SELECT FROM outcomes e WHERE e.conversation = ordered.conversation
                                 AND e.turn = ordered.turn) THEN
            INSERT INTO runs (conversation, turn, worker, attempt)
                VALUES (ordered.conversation, ordered.turn, by_worker, with_attempt) ON CONFLICT DO NOTHING;
            IF FOUND THEN
                UPDATE processes p SET attempt = with_attempt WHERE p.id = by_worker;
                RETURN QUERY SELECT ordered.conversation, ordered.turn, ordered.pool, ordered.work, l.address, l.token
                    FROM (SELECT) AS one LEFT JOIN listeners l
                    ON l.conversation = ordered.conversation AND l.turn = ordered.turn;
                RETURN;
            END IF;
            -- Delivered twice. Its job stays until it has ended, so that it can still be cancelled.
            CONTINUE;
        END IF;
        -- Nobody wants it any more.
        PERFORM finish_job(given.id);
    END LOOP;
END
$$;

CREATE FUNCTION check_run(by_worker bigint, of_conversation text, of_turn text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM check_process(by_worker);
    RETURN EXISTS (SELECT FROM runs WHERE conversation = of_conversation AND turn = of_turn AND worker = by_worker);
END
$$;

CREATE FUNCTION end_order(by_worker bigint, of_conversation text, of_turn text, how text, what bytea)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = bullpen_cluster, pg_temp AS $$
BEGIN
    RETURN check_run(by_worker, of_conversation, of_turn) AND end_turn(of_conversation, of_turn, how, what);
END
$$;

CREATE FUNCTION listener_of(by_worker bigint, of_conversation text, of_turn text)
RETURNS TABLE (address text, token text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = bullpen_cluster, pg_temp AS $$
BEGIN
    IF check_run(by_worker, of_conversation, of_turn) THEN
        RETURN QUERY SELECT l.address, l.token FROM listeners l
            WHERE l.conversation = of_conversation AND l.turn = of_turn;
    END IF;
END
$$;

-- Returns whether the first line of all is there. If not, a crash has lost what was left before; the owner waits for it.
CREATE FUNCTION leave_lines(by_worker bigint, of_conversation text, of_turn text, first bigint, told bytea[])
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = bullpen_cluster, pg_temp AS $$
BEGIN
    PERFORM not_synced();
    PERFORM FROM orders o WHERE o.conversation = of_conversation AND o.turn = of_turn FOR KEY SHARE;
    IF FOUND AND check_run(by_worker, of_conversation, of_turn) THEN
        INSERT INTO lines SELECT of_conversation, of_turn, first + place - 1, line
            FROM unnest(told) WITH ORDINALITY AS given (line, place) ON CONFLICT DO NOTHING;
        PERFORM pg_notify('bullpen_lines', of_conversation || ' ' || of_turn);
        RETURN EXISTS (SELECT FROM lines WHERE conversation = of_conversation AND turn = of_turn AND number = 1);
    END IF;
    RETURN NULL;
END
$$;

CREATE FUNCTION words_of(by_worker bigint, of_conversation text, of_turn text, after bigint)
RETURNS TABLE (number bigint, word bytea)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = bullpen_cluster, pg_temp AS $$
BEGIN
    IF check_run(by_worker, of_conversation, of_turn) THEN
        RETURN QUERY SELECT w.number, w.word FROM words w
            WHERE w.conversation = of_conversation AND w.turn = of_turn AND w.number > after ORDER BY w.number;
    END IF;
END
$$;

CREATE FUNCTION cluster_name() RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = bullpen_cluster, pg_temp AS $$
    SELECT cluster FROM access
$$;

-- Which of these conversations are deleted, so that a worker need not keep anything for them. Their table is the only
-- one of its kind that is not a stranger's; without it, nothing is known to be deleted.
CREATE FUNCTION deleted_of(by_worker bigint, known text[]) RETURNS SETOF text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = bullpen_cluster, pg_temp AS $$
DECLARE
    tables regclass[];
BEGIN
    PERFORM check_process(by_worker);
    tables := ARRAY(SELECT c.oid::regclass FROM pg_class c, pg_namespace ours WHERE ours.nspname = 'bullpen_cluster'
        AND c.relname = 'conversations' AND c.relkind = 'r' AND pg_has_role(c.relowner, ours.nspowner, 'MEMBER')
        AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'first_link'));
    IF cardinality(tables) = 1 THEN
        RETURN QUERY EXECUTE format('SELECT one FROM unnest($1) AS given (one) WHERE NOT EXISTS ('
            'SELECT FROM %s c WHERE c.id = given.one AND c.deleted_at IS NULL)', tables[1]) USING known;
    END IF;
END
$$;

-- Orders, for nodes.

-- Orders something from one worker, unless the node was given up: then another one may do so by now.
CREATE FUNCTION place_errand(
    of_conversation text, called text, in_pool text, of_worker text, what bytea, by_node bigint
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM processes p WHERE p.id = by_node AND p.ended_at IS NULL FOR SHARE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO orders (conversation, turn, pool, worker, is_errand, work, token, owner)
        VALUES (of_conversation, called, in_pool, of_worker, true, what, '', by_node) ON CONFLICT DO NOTHING;
    RETURN true;
END
$$;

-- Ends the errands of a conversation that another owner ordered and that have not begun. Returns those that have.
CREATE FUNCTION errands_left(of_conversation text, of_node bigint) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    called text;
BEGIN
    FOR called IN SELECT o.turn FROM orders o WHERE o.conversation = of_conversation AND o.is_errand
        AND o.owner <> of_node LOOP
        PERFORM cancel_order(of_conversation, called);
        IF EXISTS (SELECT FROM outcomes e WHERE e.conversation = of_conversation AND e.turn = called) THEN
            DELETE FROM orders o WHERE o.conversation = of_conversation AND o.turn = called;
        ELSE
            RETURN NEXT called;
        END IF;
    END LOOP;
END
$$;

CREATE FUNCTION cancel_order(of_conversation text, of_turn text) RETURNS void LANGUAGE plpgsql AS $$
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

-- Leaves a word for the agent of a turn that has not ended. The lock makes one wait for the other: the worker reads what
-- comes after the last one that it has. Left again, it is the same word.
CREATE FUNCTION leave_word(of_conversation text, of_turn text, of_word text, said bytea) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM orders WHERE conversation = of_conversation AND turn = of_turn FOR NO KEY UPDATE;
    IF FOUND AND NOT EXISTS (SELECT FROM outcomes WHERE conversation = of_conversation AND turn = of_turn) THEN
        INSERT INTO words SELECT of_conversation, of_turn, 1 + count(*), of_word, said FROM words
            WHERE conversation = of_conversation AND turn = of_turn ON CONFLICT DO NOTHING;
        PERFORM pg_notify('bullpen_words', of_conversation || ' ' || of_turn);
    END IF;
END
$$;

-- Lets every worker of its pool take an order that one of them was to have and has not taken.
CREATE FUNCTION open_order(of_conversation text, of_turn text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    -- The job first, as where orders are handed out.
    UPDATE procrastinate_jobs j SET queue_name = o.pool FROM orders o
        WHERE o.conversation = of_conversation AND o.turn = of_turn AND o.worker <> '' AND NOT o.is_errand
        AND j.id = o.job AND j.status = 'todo';
    IF FOUND THEN
        UPDATE orders SET worker = '' WHERE conversation = of_conversation AND turn = of_turn;
    END IF;
END
$$;

-- Removes the order of a turn whose end is stored. Nobody wants it any more, so what has not ended is cancelled.
CREATE FUNCTION settle_order(of_conversation text, of_turn text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM outcomes WHERE conversation = of_conversation AND turn = of_turn) THEN
        -- If a crash loses that, it is done a day later.
        PERFORM not_synced();
    ELSE
        PERFORM cancel_order(of_conversation, of_turn);
    END IF;
    DELETE FROM orders o WHERE o.conversation = of_conversation AND o.turn = of_turn
        AND EXISTS (SELECT FROM outcomes e WHERE e.conversation = of_conversation AND e.turn = of_turn);
END
$$;

-- Does that with all orders of a conversation but those of turns that still run. Its owner may have died before it did.
CREATE FUNCTION settle_others(of_conversation text, running text[]) RETURNS void
LANGUAGE plpgsql SET search_path = bullpen_cluster, pg_temp AS $$
DECLARE
    before text := current_setting('synchronous_commit');
BEGIN
    PERFORM settle_order(o.conversation, o.turn) FROM orders o
        WHERE o.conversation = of_conversation AND NOT o.is_errand AND o.turn <> ALL (running);
    -- What else the transaction does may be to be on disk.
    PERFORM set_config('synchronous_commit', before, true);
END
$$;

-- Lets a role serve a pool: it reaches the orders of its pools by functions, and nothing else.
CREATE FUNCTION let_serve(of_role name, in_pool text) RETURNS void
LANGUAGE plpgsql SET search_path = bullpen_cluster, pg_temp AS $$
BEGIN
    -- What it makes there could be called by nodes instead of what they mean. Before PostgreSQL 15, everybody may.
    IF has_schema_privilege(of_role, to_regnamespace('public')::oid, 'CREATE') THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('the role %s may make tables and functions in the schema public, which nodes use', of_role),
            HINT = 'REVOKE CREATE ON SCHEMA public FROM PUBLIC, and from this role.';
    END IF;
    INSERT INTO pool_roles VALUES (of_role, in_pool) ON CONFLICT DO NOTHING;
    EXECUTE format('GRANT USAGE ON SCHEMA bullpen_cluster TO %I', of_role);
    EXECUTE format(
        'GRANT EXECUTE ON FUNCTION made_by_version, is_taken, join_cluster, beat, leave_cluster, next_order, end_order,'
            ' listener_of, leave_lines, words_of, cluster_name, deleted_of TO %I',
        of_role
    );
END
$$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA bullpen_cluster FROM PUBLIC;
