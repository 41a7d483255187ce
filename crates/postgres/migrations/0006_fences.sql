-- What a node removes has to be there, and items belong to the owner of their mailbox.

-- The lease of a node, and the fences of the shards whose entries it changes. A fence is good for batches
-- after number `from`. Returns the bodies that the entries of before name. The locks let leases be
-- renewed, and let a takeover wait.
--
-- p_batch: the number n of the first batch that changes an entry; -1 - n if that batch removes it. Then
-- the entry has to be there: else another owner has removed it, and what the batch makes of it was made
-- by that owner. Items (id 0 or more) need the fence of their queue, there or not.
CREATE OR REPLACE FUNCTION check_rights(
    p_node bigint, p_shard bigint[], p_fence bigint[], p_from bigint[],
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
        SELECT FROM shard s JOIN unnest(p_shard, p_fence, p_from) f(queue, fence, start)
            ON f.queue = s.queue AND f.fence = s.fence
            AND f.start < CASE WHEN e.batch < 0 THEN -1 - e.batch ELSE e.batch END
        WHERE s.queue = e.queue AND s.owner = p_node);
    IF v_fenced IS NOT NULL THEN
        RAISE EXCEPTION 'another node drives this' USING ERRCODE = 'MT005', DETAIL = v_fenced;
    END IF;
    RETURN array_remove(v_body, NULL);
END $$;
