-- What the nodes of a site tracked of messages (crates/tracking), copied from their files.

-- Where events come from: a directory of files, as a node has it. copied_to is the place in them up to which
-- all is here, begun_at where the copy began; it changes with what is added, in one transaction. size is that
-- of its pages. complete: the node ended in order, and nothing of it is missing here. copied: when something was.
CREATE TABLE tracked_origin (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    directory bytea NOT NULL,
    node text NOT NULL,
    begun_at bigint NOT NULL,
    copied_to bigint NOT NULL,
    size bigint NOT NULL DEFAULT 0,
    complete boolean NOT NULL DEFAULT false,
    last_time bigint NOT NULL DEFAULT 0,
    copied timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (directory, node)
) WITH (fillfactor = 20, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);

-- The order in which pages came.
CREATE SEQUENCE tracked_pages;

-- Events of one origin, at most 64 KiB and a minute of them. first and last: times in microseconds since 1970.
-- keys: how many lead to the page.
CREATE TABLE tracked (
    page bigint PRIMARY KEY,
    origin integer NOT NULL,
    at bigint NOT NULL,
    first bigint NOT NULL,
    last bigint NOT NULL,
    keys integer NOT NULL,
    octets bytea NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX tracked_first ON tracked (first, page);
CREATE INDEX tracked_last ON tracked (last, page);

-- What pages are found by: the hash of an identifier or address, once for each page. The index has the keys
-- of 1024 pages side by side: what is added touches few of its leaves, whatever its length, and what is
-- removed empties whole ones. A question looks once into each such part.
CREATE TABLE tracked_key (
    hash bigint NOT NULL,
    page bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX tracked_key_hash ON tracked_key ((page >> 10), hash);

-- Begins or continues the copy of an origin. Where its directory was copied under another name, from there.
CREATE FUNCTION begin_tracked(
    p_directory bytea, p_node text, OUT o_origin integer, OUT o_copied_to bigint
) LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tracked_origin (directory, node, begun_at, copied_to)
    SELECT p_directory, p_node, coalesce(max(copied_to), 0), coalesce(max(copied_to), 0)
    FROM tracked_origin WHERE directory = p_directory
    ON CONFLICT (directory, node) DO NOTHING;
    SELECT id, copied_to INTO o_origin, o_copied_to FROM tracked_origin
    WHERE directory = p_directory AND node = p_node;
END $$;

-- Octets of a page and its keys as the server keeps them, compressed. A key and its place in the index are some
-- 72 octets.
CREATE FUNCTION tracked_size(p_octets bytea, p_keys integer) RETURNS bigint LANGUAGE sql
AS $$ SELECT pg_column_size(p_octets) + 100 + 72 * p_keys::bigint $$;

-- Adds pages, if the copy is as far as p_from; false if not. The keys come in the order of their hashes, each
-- with the number of its page among these. The files have all this, so nobody waits for the disk or for a
-- standby: what a server loses is noticed by copied_to, and copied again.
CREATE FUNCTION add_tracked(
    p_origin integer, p_from bigint, p_to bigint,
    p_at bigint[], p_first bigint[], p_last bigint[], p_keys integer[], p_octets bytea[],
    p_hash bigint[], p_of integer[]
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_pages bigint[];
    v_size bigint;
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    UPDATE tracked_origin SET copied_to = p_to, complete = false, copied = clock_timestamp(),
        last_time = (SELECT max(l) FROM unnest(p_last) l)
    WHERE id = p_origin AND copied_to = p_from;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    SELECT array_agg(nextval('tracked_pages')) INTO v_pages
    FROM generate_series(1, cardinality(p_at));
    INSERT INTO tracked (page, origin, at, first, last, keys, octets)
    SELECT page, p_origin, at, first, last, keys, octets
    FROM unnest(v_pages, p_at, p_first, p_last, p_keys, p_octets)
        p(page, at, first, last, keys, octets);
    INSERT INTO tracked_key (hash, page)
    SELECT hash, v_pages[n] FROM unnest(p_hash, p_of) k(hash, n);
    SELECT sum(tracked_size(octets, keys)) INTO v_size FROM tracked WHERE page = ANY (v_pages);
    UPDATE tracked_origin SET size = size + coalesce(v_size, 0) WHERE id = p_origin;
    RETURN true;
END $$;

CREATE FUNCTION end_tracked(p_origin integer) RETURNS void LANGUAGE sql AS
$$ UPDATE tracked_origin SET complete = true WHERE id = p_origin $$;

-- Removes some of the oldest pages if all have more than so many octets, and some keys of pages that are gone;
-- one node at a time. Whether it removed any.
CREATE FUNCTION prune_tracked(p_limit bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_count bigint := 0;
    v_keys bigint;
    v_first bigint;
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    IF NOT pg_try_advisory_xact_lock(1836343602, hashtext(current_schema())) THEN
        RETURN false;
    END IF;
    IF (SELECT sum(size) FROM tracked_origin) > p_limit THEN
        WITH gone AS (
            DELETE FROM tracked WHERE page = ANY (ARRAY(
                SELECT page FROM tracked ORDER BY page LIMIT 64)) RETURNING origin, tracked_size(octets, keys) AS size
        ), sums AS (SELECT origin, sum(size) AS size, count(*) FROM gone GROUP BY origin),
        less AS (
            UPDATE tracked_origin o SET size = o.size - s.size FROM sums s WHERE o.id = s.origin
        ) SELECT coalesce(sum(count), 0) INTO v_count FROM sums;
    END IF;
    SELECT min(page) INTO v_first FROM tracked;
    DELETE FROM tracked_key WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM tracked_key WHERE (page >> 10) < (v_first >> 10) LIMIT 5000));
    GET DIAGNOSTICS v_keys = ROW_COUNT;
    RETURN v_count + v_keys > 0;
END $$;
