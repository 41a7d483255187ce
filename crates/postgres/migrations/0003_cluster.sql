-- What the nodes of a site call.

-- This run is a node of this name; an earlier joining of that name is dead. What earlier runs of the name
-- were receiving is this run's: these contents.
CREATE FUNCTION join_site(
    p_run bigint, p_name text, p_lease interval, OUT o_epoch bigint, OUT o_contents bigint[]
) LANGUAGE plpgsql AS $$
DECLARE
    v_dead bigint[];
BEGIN
    o_epoch := nextval('epochs');
    -- In the order in which commits lock them: runs, nodes, shards.
    PERFORM FROM run WHERE name = p_name AND epoch <> p_run ORDER BY epoch FOR UPDATE;
    SELECT array_agg(epoch) INTO v_dead FROM (
        SELECT epoch FROM node WHERE name = p_name AND died IS NULL FOR UPDATE) n;
    PERFORM lay_down(v_dead);
    WITH taken AS (
        UPDATE content SET owner = p_run WHERE refs = 0 AND owner IN (
            SELECT epoch FROM run WHERE name = p_name AND epoch <> p_run)
        RETURNING id
    ) SELECT coalesce(array_agg(id), '{}') INTO o_contents FROM taken;
    DELETE FROM run WHERE name = p_name AND epoch <> p_run;
    INSERT INTO node (epoch, name, run, lease_until)
    VALUES (o_epoch, p_name, p_run, clock_timestamp() + p_lease);
    PERFORM notify_nodes('m');
END $$;

-- Nodes whose rows are locked are dead, and own nothing.
CREATE FUNCTION lay_down(p_dead bigint[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE node SET died = clock_timestamp() WHERE epoch = ANY (p_dead) AND died IS NULL;
    PERFORM FROM shard WHERE owner = ANY (p_dead) ORDER BY queue FOR UPDATE;
    UPDATE shard SET owner = NULL, since = clock_timestamp() WHERE owner = ANY (p_dead);
    UPDATE shard SET asked_by = NULL WHERE asked_by = ANY (p_dead);
END $$;

CREATE FUNCTION bury(p_own bigint, p_nodes bigint[]) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    v_dead bigint[];
BEGIN
    SELECT coalesce(array_agg(epoch), '{}') INTO v_dead FROM (
        SELECT epoch FROM node WHERE epoch = ANY (p_nodes)
            AND (epoch = p_own OR died IS NOT NULL OR lease_until <= clock_timestamp())
        ORDER BY epoch FOR UPDATE) n;
    PERFORM lay_down(v_dead);
    PERFORM notify_nodes('m');
    RETURN v_dead;
END $$;

-- 1 and the fence if it is the node's now, 0 and the owner if it is another's, -1 if the node is dead.
CREATE FUNCTION acquire(p_node bigint, p_queue bigint, p_name text, OUT o_is smallint, OUT o_number bigint)
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM node WHERE epoch = p_node AND died IS NULL
        AND lease_until > clock_timestamp() FOR KEY SHARE;
    IF NOT FOUND THEN
        o_is := -1; o_number := 0;
        RETURN;
    END IF;
    INSERT INTO shard (queue, name) VALUES (p_queue, p_name) ON CONFLICT DO NOTHING;
    PERFORM FROM shard WHERE queue = p_queue FOR UPDATE;
    UPDATE shard SET owner = p_node, name = p_name, fence = fence + 1,
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

CREATE FUNCTION release_shards(p_node bigint, p_queues bigint[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM shard WHERE queue = ANY (p_queues) AND owner = p_node ORDER BY queue FOR UPDATE;
    UPDATE shard SET owner = NULL, asked_by = NULL, since = clock_timestamp()
    WHERE queue = ANY (p_queues) AND owner = p_node;
    PERFORM notify_nodes('m');
END $$;

-- Begins a run; without a node it is alone, and all others are over. MT007: a node has a lease.
CREATE FUNCTION begin_run(p_node text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_epoch bigint := nextval('epochs');
    v_dead bigint[];
BEGIN
    INSERT INTO run (epoch, name) VALUES (v_epoch, p_node);
    IF p_node IS NOT NULL THEN
        -- A process that was alone is over.
        PERFORM FROM run WHERE name IS NULL ORDER BY epoch FOR UPDATE;
        UPDATE content SET owner = v_epoch WHERE refs = 0 AND owner IN (
            SELECT epoch FROM run WHERE name IS NULL);
        DELETE FROM run WHERE name IS NULL;
        RETURN v_epoch;
    END IF;
    PERFORM FROM run WHERE epoch <> v_epoch ORDER BY epoch FOR UPDATE;
    SELECT array_agg(epoch) INTO v_dead FROM (
        SELECT epoch FROM node WHERE died IS NULL ORDER BY epoch FOR UPDATE) n;
    IF EXISTS (SELECT FROM node WHERE died IS NULL AND lease_until > clock_timestamp()) THEN
        RAISE EXCEPTION 'a node of a site has a lease' USING ERRCODE = 'MT007';
    END IF;
    PERFORM lay_down(v_dead);
    UPDATE content SET owner = v_epoch WHERE refs = 0 AND owner IS NOT NULL;
    DELETE FROM run WHERE epoch <> v_epoch;
    RETURN v_epoch;
END $$;

-- What nodes that died long ago were receiving is nobody's: it is swept then.
CREATE FUNCTION forget_dead() RETURNS void LANGUAGE sql AS $$
    DELETE FROM run r WHERE EXISTS (
            SELECT FROM node n WHERE n.run = r.epoch AND n.died < clock_timestamp() - interval '1 day')
        AND NOT EXISTS (SELECT FROM node n WHERE n.run = r.epoch AND n.died IS NULL);
    DELETE FROM node WHERE died < clock_timestamp() - interval '7 days';
$$;
