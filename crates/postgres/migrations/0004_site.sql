-- What belongs to the site and not to a node: its users, and values that two nodes may change at once.

-- The users with a mailbox: the hash of each password, and whether messages go into the message store.
CREATE TABLE account (
    address text COLLATE "C" PRIMARY KEY,
    hash text NOT NULL,
    is_stored boolean NOT NULL DEFAULT false,
    changed timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 80);

-- Every change of a user reaches the nodes, also one by hand.
CREATE FUNCTION account_changed() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT
AS $$ BEGIN
    PERFORM notify_nodes('u');
    RETURN NULL;
END $$;
CREATE TRIGGER account_changed AFTER INSERT OR UPDATE OR DELETE ON account
FOR EACH STATEMENT EXECUTE FUNCTION account_changed();

-- As commit_group, if each of these values still has the digest that its writer knows. Refusal MT008: the
-- names of those that another node has changed.
CREATE FUNCTION commit_over(
    p_over_name text[], p_over bytea[],
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
    v_changed text;
BEGIN
    -- A row that is not there cannot be locked. It counts as an empty value.
    INSERT INTO meta (name, value) SELECT n, '' FROM unnest(p_over_name) n ORDER BY n
    ON CONFLICT DO NOTHING;
    PERFORM FROM meta WHERE name = ANY (p_over_name) ORDER BY name FOR UPDATE;
    SELECT string_agg(o.name, ',') INTO v_changed
    FROM unnest(p_over_name, p_over) o(name, known) JOIN meta m ON m.name = o.name
    WHERE sha256(m.value) <> o.known;
    IF v_changed IS NOT NULL THEN
        RAISE EXCEPTION 'values were changed meanwhile' USING ERRCODE = 'MT008', DETAIL = v_changed;
    END IF;
    PERFORM commit_group(
        p_epoch, p_connection, p_group, p_node, p_shard, p_fence, p_from,
        p_needed, p_copy_to, p_copy_from,
        p_content, p_content_refs, p_content_octets, p_content_sums,
        p_bound, p_bound_refs, p_bound_length, p_body, p_body_content, p_dropped,
        p_rank, p_id, p_queue, p_entry_body, p_record, p_gone_rank, p_gone_id, p_batch,
        p_new_key, p_new_until, p_new_record, p_key, p_until, p_answer, p_step,
        p_before, p_most, p_name, p_value);
END $$;
