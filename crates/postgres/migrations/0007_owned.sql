-- What a commit costs does not grow with the shards that its node owns: the row of a shard has from which batch its
-- owner's commits count, and no commit has to bring that of every shard. Values that no other node looks at are not
-- notified.

-- Batches of the owner up to this number are of an earlier ownership.
ALTER TABLE shard ADD start bigint NOT NULL DEFAULT 0;

DROP FUNCTION acquire(bigint, bigint, text);
DROP FUNCTION check_rights(bigint, bigint[], bigint[], bigint[], smallint[], bigint[], bigint[]);

-- 1 and the fence if it is the node's now, 0 and the owner if it is another's, -1 if the node is dead.
CREATE FUNCTION acquire(
    p_node bigint, p_queue bigint, p_name text, p_from bigint, OUT o_is smallint, OUT o_number bigint
) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM node WHERE epoch = p_node AND died IS NULL
        AND lease_until > clock_timestamp() FOR KEY SHARE;
    IF NOT FOUND THEN
        o_is := -1; o_number := 0;
        RETURN;
    END IF;
    INSERT INTO shard (queue, name) VALUES (p_queue, p_name) ON CONFLICT DO NOTHING;
    PERFORM FROM shard WHERE queue = p_queue FOR UPDATE;
    UPDATE shard SET owner = p_node, name = p_name, fence = fence + 1, start = p_from,
        since = clock_timestamp(), asked_by = NULL
    -- Its own too: what the node began under an older fence is fenced then.
    WHERE queue = p_queue AND (owner IS NULL OR owner = p_node);
    IF FOUND THEN
        PERFORM notify_nodes('m');
    END IF;
    SELECT CASE WHEN owner = p_node THEN 1 ELSE 0 END,
        CASE WHEN owner = p_node THEN fence ELSE owner END
    INTO o_is, o_number FROM shard WHERE queue = p_queue;
END $$;

-- The lease of a node, and its ownership of the shards whose entries it changes. It is good for batches after
-- number `start` of the shard. Returns the bodies that the entries of before name. The locks let leases be
-- renewed, and let a takeover wait.
--
-- p_batch: the number n of the first batch that changes an entry; -1 - n if that batch removes it. Then
-- the entry has to be there: else another owner has removed it, and what the batch makes of it was made
-- by that owner. Items (id 0 or more) need the ownership of their queue, there or not.
CREATE FUNCTION check_rights(
    p_node bigint,
    p_rank smallint[], p_id bigint[], p_batch bigint[]
) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    v_rank smallint[];
    v_id bigint[];
    v_queue bigint[];
    v_body bigint[];
    v_batch bigint[];
    v_gone text;
    v_fenced text;
BEGIN
    PERFORM FROM node WHERE epoch = p_node AND died IS NULL
        AND lease_until > clock_timestamp() FOR KEY SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'this node has no lease' USING ERRCODE = 'MT004';
    END IF;
    IF cardinality(p_id) = 0 THEN
        RETURN '{}';
    END IF;
    SELECT array_agg(e.rank), array_agg(e.id), array_agg(e.queue), array_agg(e.body),
        array_agg(e.batch)
    INTO v_rank, v_id, v_queue, v_body, v_batch
    FROM (
        SELECT entry.*, k.batch FROM unnest(p_rank, p_id, p_batch) k(rank, id, batch)
        JOIN entry ON entry.rank = k.rank AND entry.id = k.id FOR UPDATE OF entry
    ) e;
    SELECT string_agg(g.rank || ':' || g.id || ':', ',') INTO v_gone
    FROM (
        SELECT k.rank, k.id FROM unnest(p_rank, p_id, p_batch) k(rank, id, batch) WHERE k.batch < 0
        EXCEPT SELECT h.rank, h.id FROM unnest(v_rank, v_id) h(rank, id)
    ) g;
    IF v_gone IS NOT NULL THEN
        RAISE EXCEPTION 'another node has removed this' USING ERRCODE = 'MT005', DETAIL = v_gone;
    END IF;
    -- The items that are new: their queues are 2^62 and the number of the mailbox.
    SELECT v_rank || array_agg(k.rank), v_id || array_agg(k.id),
        v_queue || array_agg((k.id >> 32) - 4611686018427387904), v_batch || array_agg(k.batch)
    INTO v_rank, v_id, v_queue, v_batch
    FROM unnest(p_rank, p_id, p_batch) k(rank, id, batch) WHERE k.id >= 0;
    PERFORM FROM shard WHERE queue = ANY (v_queue) ORDER BY queue FOR KEY SHARE;
    SELECT string_agg(e.rank || ':' || e.id || ':' || e.queue, ',') INTO v_fenced
    FROM unnest(v_rank, v_id, v_queue, v_batch) e(rank, id, queue, batch)
    WHERE NOT EXISTS (
        SELECT FROM shard s WHERE s.queue = e.queue AND s.owner = p_node
            AND s.start < CASE WHEN e.batch < 0 THEN -1 - e.batch ELSE e.batch END);
    IF v_fenced IS NOT NULL THEN
        RAISE EXCEPTION 'another node drives this' USING ERRCODE = 'MT005', DETAIL = v_fenced;
    END IF;
    RETURN array_remove(v_body, NULL);
END $$;

-- Commits a group of batches, whole or not at all. The caller has merged it: every key is here once.
-- Refusals: MT001 keys that had to be absent, MT002 bodies that are not there, MT003 contents that are no
-- longer the caller's, MT004 no lease, MT005 entries of a shard that is not the caller's, MT006 another
-- connection of the same run, or another run, has taken over.
--
-- p_shard, p_fence, p_from: not looked at since version 7, the shard's row has what counts.
CREATE OR REPLACE FUNCTION commit_group(
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
        v_dropped := v_dropped || check_rights(p_node,
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
        -- A notice is dear: commits with one are made one by one. The owner learns by its own commits. Of the
        -- named values the nodes look at those of the site, whose names have no slash, and at what users register;
        -- the others are of a node or of a mailbox, and change all the time.
        PERFORM notify_nodes('e' || q) FROM (SELECT DISTINCT q FROM unnest(p_queue) q) q
        WHERE NOT EXISTS (SELECT FROM shard s WHERE s.queue = q AND s.owner = p_node);
        PERFORM notify_nodes('v' || n) FROM unnest(p_name) n
        WHERE strpos(n, '/') = 0 OR starts_with(n, 'registered/');
    END IF;
END $$;
