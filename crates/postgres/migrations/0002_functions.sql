-- What a store calls. All run with the rights of the caller, and each call is one transaction.

-- Commits a group of batches, whole or not at all. The caller has merged it: every key is here once.
-- Refusals: MT001 keys that had to be absent, MT002 bodies that are not there, MT003 contents that are no
-- longer the caller's, MT004 no lease, MT005 entries of a shard that is not the caller's, MT006 another
-- connection of the same run, or another run, has taken over.
CREATE FUNCTION commit_group(
    p_epoch bigint, p_connection bigint, p_group bigint,
    p_node bigint, p_shard bigint[], p_fence bigint[], p_from bigint[],
    p_needed bigint[], p_copy_to bigint[], p_copy_from bigint[],
    p_content bigint[], p_content_refs integer[], p_content_octets bytea[], p_content_sums bytea[],
    p_bound bigint[], p_bound_refs integer[], p_bound_length bigint[],
    p_body bigint[], p_body_content bigint[], p_dropped bigint[],
    p_rank smallint[], p_id bigint[], p_queue bigint[], p_entry_body bigint[], p_record bytea[],
    p_gone_rank smallint[], p_gone_id bigint[], p_batch bigint[],
    p_new_key bytea[], p_new_until bigint[], p_new_record bytea[],
    p_key bytea[], p_until bigint[], p_answer bytea[], p_step integer[],
    p_before bigint[], p_most bigint[],
    p_name text[], p_value bytea[]
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_count bigint;
    v_keys bytea[];
    v_ids bigint[];
    v_dropped bigint[] := p_dropped;
    v_released bigint[];
BEGIN
    UPDATE run SET last = p_group WHERE epoch = p_epoch AND connection = p_connection;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'another connection or run has taken over' USING ERRCODE = 'MT006';
    END IF;
    IF p_node IS NOT NULL THEN
        v_dropped := v_dropped || check_rights(p_node, p_shard, p_fence, p_from,
            p_rank || p_gone_rank, p_id || p_gone_id, p_batch);
        PERFORM FROM body WHERE id = ANY (p_entry_body) ORDER BY id FOR KEY SHARE;
    END IF;

    IF cardinality(p_new_key) > 0 THEN
        WITH made AS (
            INSERT INTO seen (key, until, record)
            SELECT * FROM unnest(p_new_key, p_new_until, p_new_record)
            ON CONFLICT DO NOTHING RETURNING key
        ) SELECT coalesce(array_agg(key), '{}') INTO v_keys FROM made;
        IF cardinality(v_keys) < cardinality(p_new_key) THEN
            RAISE EXCEPTION 'keys are remembered' USING ERRCODE = 'MT001', DETAIL = (
                SELECT string_agg(encode(k, 'hex'), ',') FROM unnest(p_new_key) k
                WHERE k <> ALL (v_keys));
        END IF;
    END IF;

    IF cardinality(p_needed) > 0 THEN
        SELECT array_agg(n) INTO v_ids FROM unnest(p_needed) n
        WHERE NOT EXISTS (SELECT FROM body WHERE id = n);
        IF v_ids IS NOT NULL THEN
            RAISE EXCEPTION 'bodies are not there'
                USING ERRCODE = 'MT002', DETAIL = array_to_string(v_ids, ',');
        END IF;
    END IF;
    IF cardinality(p_copy_to) > 0 THEN
        SELECT array_agg(b.content ORDER BY n) INTO v_ids
        FROM unnest(p_copy_from) WITH ORDINALITY AS f(id, n) JOIN body b ON b.id = f.id;
        UPDATE content SET refs = refs + c.n
        FROM (SELECT id, count(*) AS n FROM unnest(v_ids) id GROUP BY id) c
        WHERE content.id = c.id AND refs > 0;
        GET DIAGNOSTICS v_count = ROW_COUNT;
        IF cardinality(v_ids) < cardinality(p_copy_to)
            OR v_count < (SELECT count(DISTINCT id) FROM unnest(v_ids) id) THEN
            RAISE EXCEPTION 'bodies went meanwhile'
                USING ERRCODE = 'MT002', DETAIL = array_to_string(p_copy_from, ',');
        END IF;
        p_body := p_body || p_copy_to;
        p_body_content := p_body_content || v_ids;
    END IF;

    IF cardinality(p_content) > 0 THEN
        INSERT INTO content (id, length, refs, octets, sums)
        SELECT id, octet_length(octets), refs, octets, sums
        FROM unnest(p_content, p_content_refs, p_content_octets, p_content_sums)
            c(id, refs, octets, sums);
    END IF;
    IF cardinality(p_bound) > 0 THEN
        UPDATE content SET refs = b.refs, length = b.length, owner = NULL
        FROM unnest(p_bound, p_bound_refs, p_bound_length) b(id, refs, length)
        WHERE content.id = b.id AND owner = p_epoch AND content.refs = 0;
        GET DIAGNOSTICS v_count = ROW_COUNT;
        IF v_count < cardinality(p_bound) THEN
            RAISE EXCEPTION 'contents were removed' USING ERRCODE = 'MT003';
        END IF;
        DELETE FROM note WHERE content = ANY (p_bound);
    END IF;

    IF cardinality(p_gone_id) > 0 THEN
        DELETE FROM entry e USING unnest(p_gone_rank, p_gone_id) g(rank, id)
        WHERE e.rank = g.rank AND e.id = g.id;
    END IF;
    IF cardinality(p_id) > 0 THEN
        INSERT INTO entry (rank, id, queue, body, record)
        SELECT * FROM unnest(p_rank, p_id, p_queue, p_entry_body, p_record)
        ON CONFLICT (rank, id) DO UPDATE SET queue = excluded.queue, body = excluded.body,
            record = excluded.record, seq = excluded.seq, xact = excluded.xact;
    END IF;

    IF cardinality(v_dropped) > 0 OR cardinality(p_body) > 0 THEN
        IF p_node IS NOT NULL THEN
            -- Whoever removes the last entry removes the body. Locked first: then the look at the
            -- entries is later than all that others did to them.
            PERFORM FROM body WHERE id = ANY (v_dropped) ORDER BY id FOR UPDATE;
            SELECT array_agg(d) INTO v_dropped FROM unnest(v_dropped) d
            WHERE NOT EXISTS (SELECT FROM entry WHERE body = d);
        END IF;
        WITH gone AS (
            DELETE FROM body WHERE id = ANY (v_dropped || p_body) RETURNING content
        ) SELECT array_agg(content) INTO v_released FROM gone;
        INSERT INTO body (id, content) SELECT * FROM unnest(p_body, p_body_content);
        IF v_released IS NOT NULL THEN
            PERFORM release(v_released);
        END IF;
    END IF;

    IF cardinality(p_key) > 0 OR cardinality(p_before) > 0 THEN
        PERFORM remember(p_key, p_until, p_answer, p_step, p_before, p_most);
    END IF;
    IF cardinality(p_name) > 0 THEN
        INSERT INTO meta (name, value) SELECT * FROM unnest(p_name, p_value)
        ON CONFLICT (name) DO UPDATE SET value = excluded.value;
    END IF;
    IF p_node IS NOT NULL THEN
        -- The owner learns by its own commits. A notice is dear: commits with one are made one by one.
        PERFORM notify_nodes('e' || q) FROM (SELECT DISTINCT q FROM unnest(p_queue) q) q
        WHERE q <> ALL (p_shard);
        PERFORM notify_nodes('v' || n) FROM unnest(p_name) n;
    END IF;
END $$;

-- Tells the other nodes.
CREATE FUNCTION notify_nodes(p_what text) RETURNS void LANGUAGE sql
AS $$ SELECT pg_notify('mta:' || current_schema(), p_what) $$;

-- The lease of a node, and the fences of the shards whose entries it changes. A fence is good for batches
-- after number `from`. Returns the bodies that the entries of before name. The locks let leases be
-- renewed, and let a takeover wait.
CREATE FUNCTION check_rights(
    p_node bigint, p_shard bigint[], p_fence bigint[], p_from bigint[],
    p_rank smallint[], p_id bigint[], p_batch bigint[]
) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    v_rank smallint[];
    v_id bigint[];
    v_queue bigint[];
    v_body bigint[];
    v_batch bigint[];
    v_fenced text;
BEGIN
    PERFORM FROM node WHERE epoch = p_node AND died IS NULL
        AND lease_until > clock_timestamp() FOR KEY SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'this node has no lease' USING ERRCODE = 'MT004';
    END IF;
    SELECT array_agg(e.rank), array_agg(e.id), array_agg(e.queue), array_agg(e.body),
        array_agg(e.batch)
    INTO v_rank, v_id, v_queue, v_body, v_batch
    FROM (
        SELECT entry.*, k.batch FROM unnest(p_rank, p_id, p_batch) k(rank, id, batch)
        JOIN entry ON entry.rank = k.rank AND entry.id = k.id FOR UPDATE OF entry
    ) e;
    IF v_id IS NULL THEN
        RETURN '{}';
    END IF;
    PERFORM FROM shard WHERE queue = ANY (v_queue) ORDER BY queue FOR KEY SHARE;
    SELECT string_agg(e.rank || ':' || e.id || ':' || e.queue, ',') INTO v_fenced
    FROM unnest(v_rank, v_id, v_queue, v_batch) e(rank, id, queue, batch)
    WHERE NOT EXISTS (
        SELECT FROM shard s JOIN unnest(p_shard, p_fence, p_from) f(queue, fence, start)
            ON f.queue = s.queue AND f.fence = s.fence AND f.start < e.batch
        WHERE s.queue = e.queue AND s.owner = p_node);
    IF v_fenced IS NOT NULL THEN
        RAISE EXCEPTION 'another node drives this' USING ERRCODE = 'MT005', DETAIL = v_fenced;
    END IF;
    RETURN array_remove(v_body, NULL);
END $$;

-- Takes references of bodies from contents. Long contents that have none left are removed by sweep():
-- that takes long.
CREATE FUNCTION release(p_content bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_count bigint;
BEGIN
    DELETE FROM content c
    USING (SELECT id, count(*) AS n FROM unnest(p_content) id GROUP BY id) r
    WHERE c.id = r.id AND c.refs = r.n AND c.octets IS NOT NULL;
    GET DIAGNOSTICS v_count = ROW_COUNT;
    IF v_count = (SELECT count(DISTINCT id) FROM unnest(p_content) id) THEN
        RETURN;
    END IF;
    UPDATE content c SET refs = c.refs - r.n
    FROM (SELECT id, count(*) AS n FROM unnest(p_content) id GROUP BY id) r WHERE c.id = r.id;
    DELETE FROM content WHERE id = ANY (p_content) AND refs = 0 AND octets IS NOT NULL;
END $$;

-- Writes remembered keys and forgets old ones: step n is before the forgetting of number n.
CREATE FUNCTION remember(
    p_key bytea[], p_until bigint[], p_answer bytea[], p_step integer[],
    p_before bigint[], p_most bigint[]
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    FOR v_step IN 0..cardinality(p_before) LOOP
        INSERT INTO seen (key, until, record)
        SELECT key, until, answer
        FROM unnest(p_key, p_until, p_answer, p_step) k(key, until, answer, step)
        WHERE step = v_step
        ON CONFLICT (key) DO UPDATE SET until = excluded.until, record = excluded.record;
        IF v_step < cardinality(p_before) THEN
            DELETE FROM seen WHERE key = ANY (ARRAY(
                SELECT key FROM seen WHERE until < p_before[v_step + 1]
                ORDER BY until, key LIMIT p_most[v_step + 1] FOR UPDATE SKIP LOCKED));
        END IF;
    END LOOP;
END $$;

-- Writes parts of a content that is being received, and notes on it. The same call may come twice. False:
-- the content is no longer the caller's.
CREATE FUNCTION write_parts(
    p_epoch bigint, p_content bigint, p_first boolean,
    p_at bigint[], p_octets bytea[], p_sums bytea[],
    p_note integer[], p_note_at bigint[], p_digest bigint[], p_note_octets bytea[]
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM run WHERE epoch = p_epoch FOR KEY SHARE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    IF p_first THEN
        INSERT INTO content (id, owner) VALUES (p_content, p_epoch) ON CONFLICT DO NOTHING;
    END IF;
    PERFORM FROM content WHERE id = p_content AND owner = p_epoch FOR KEY SHARE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO part (content, at, octets, sums)
    SELECT p_content, p.* FROM unnest(p_at, p_octets, p_sums) p ON CONFLICT DO NOTHING;
    INSERT INTO note (content, number, at, digest, octets)
    SELECT p_content, n.* FROM unnest(p_note, p_note_at, p_digest, p_note_octets) n
    ON CONFLICT DO NOTHING;
    RETURN true;
END $$;

-- Removes up to so many parts of one content that nothing has and no run of now receives. Returns whether
-- there was anything.
CREATE FUNCTION sweep(p_parts integer) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_content bigint;
BEGIN
    SELECT id INTO v_content FROM content c
    WHERE refs = 0 AND (owner IS NULL OR NOT EXISTS (SELECT FROM run WHERE epoch = c.owner))
    ORDER BY owner LIMIT 1 FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    DELETE FROM part WHERE content = v_content AND at = ANY (ARRAY(
        SELECT at FROM part WHERE content = v_content ORDER BY at LIMIT p_parts));
    IF NOT EXISTS (SELECT FROM part WHERE content = v_content) THEN
        DELETE FROM note WHERE content = v_content;
        DELETE FROM content WHERE id = v_content;
    END IF;
    RETURN true;
END $$;
