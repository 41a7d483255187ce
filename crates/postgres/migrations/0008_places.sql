-- A node is one process: who comes later under its name waits until its lease is over, or is known to be its
-- successor.

-- Where the process runs. `place` is the same for two processes of which one can only run when the other has ended;
-- `runs` is for people.
ALTER TABLE node ADD COLUMN place text, ADD COLUMN runs text;

DROP FUNCTION join_site(bigint, text, interval);

-- This run is a node of this name; an earlier joining of that name is dead, unless it is another process whose
-- lease lasts: then there is no epoch, and o_until is the end of that lease, in seconds since 1970. What earlier
-- runs of the name were receiving is this run's: these contents. Refusal MT009: another process of that name has
-- joined since this run began, which runs there.
CREATE FUNCTION join_site(
    p_run bigint, p_name text, p_lease interval, p_place text, p_runs text,
    OUT o_epoch bigint, OUT o_contents bigint[], OUT o_until float8, OUT o_left float8, OUT o_runs text
) LANGUAGE plpgsql AS $$
DECLARE
    v_dead bigint[];
BEGIN
    o_contents := '{}';
    -- Two processes that begin at once come one after the other.
    PERFORM pg_advisory_xact_lock(1836343602, hashtext(current_schema() || '/' || p_name));
    -- In the order in which commits lock them: runs, nodes, shards.
    PERFORM FROM run WHERE epoch = p_run FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'another process has this name' USING ERRCODE = 'MT009', DETAIL = coalesce((
            SELECT runs FROM node WHERE name = p_name AND died IS NULL ORDER BY epoch DESC LIMIT 1), '');
    END IF;
    SELECT extract(epoch FROM lease_until), extract(epoch FROM lease_until - clock_timestamp()),
        coalesce(runs, 'in a place that is not known')
    INTO o_until, o_left, o_runs FROM node
    WHERE name = p_name AND died IS NULL AND run <> p_run AND lease_until > clock_timestamp()
        AND (place = p_place) IS NOT TRUE
    ORDER BY lease_until DESC LIMIT 1;
    IF FOUND THEN
        RETURN;
    END IF;
    PERFORM FROM run WHERE name = p_name AND epoch <> p_run ORDER BY epoch FOR UPDATE;
    SELECT array_agg(epoch) INTO v_dead FROM (
        SELECT epoch FROM node WHERE name = p_name AND died IS NULL ORDER BY epoch FOR UPDATE) n;
    PERFORM lay_down(v_dead);
    WITH taken AS (
        UPDATE content SET owner = p_run WHERE refs = 0 AND owner IN (
            SELECT epoch FROM run WHERE name = p_name AND epoch <> p_run)
        RETURNING id
    ) SELECT coalesce(array_agg(id), '{}') INTO o_contents FROM taken;
    DELETE FROM run WHERE name = p_name AND epoch <> p_run;
    o_epoch := nextval('epochs');
    INSERT INTO node (epoch, name, run, lease_until, place, runs)
    VALUES (o_epoch, p_name, p_run, clock_timestamp() + p_lease, p_place, p_runs);
    PERFORM notify_nodes('m');
END $$;
