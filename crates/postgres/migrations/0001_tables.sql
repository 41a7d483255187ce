-- The tables of a queue store. All names are looked up in the schema of the store (search_path).
--
-- Numbers of 64 bits without a sign (identifiers, queues, times) are kept with the highest bit turned
-- over, so that their order is that of a bigint: u64() shows them. What belongs to mailboxes has the
-- highest bit and is zero or more here; what waits to be sent is negative.

CREATE FUNCTION u64(stored bigint) RETURNS numeric LANGUAGE sql IMMUTABLE STRICT
AS 'SELECT stored::numeric + 9223372036854775808';

-- Every run of a store, and every joining of a node, has a number of its own.
CREATE SEQUENCE epochs AS integer;
-- Numbers of contents, given out in blocks: a store names its contents without asking.
CREATE SEQUENCE contents INCREMENT BY 4096;
-- The order in which entries were written, within one transaction.
CREATE SEQUENCE entries CACHE 32;

-- The runs of stores, and the node of each (none without a cluster). A commit writes its number into
-- `last`, and is refused if `connection` is another one: whoever connects anew sets that, and then knows
-- that no commit of before still comes.
CREATE TABLE run (
    epoch bigint PRIMARY KEY,
    name text,
    connection bigint NOT NULL DEFAULT 0,
    last bigint NOT NULL DEFAULT 0,
    started timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 10, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);

-- The nodes of a site, one row for each joining. Renewals change no key, so the key locks of commits do
-- not wait for them; who writes that a node is dead locks its row whole, and so waits for its commits.
CREATE TABLE node (
    epoch bigint PRIMARY KEY,
    name text NOT NULL,
    run bigint NOT NULL,
    lease_until timestamptz NOT NULL,
    draining boolean NOT NULL DEFAULT false,
    died timestamptz
) WITH (fillfactor = 50);

-- Who drives a peer or a mailbox. The fence grows with every change of the owner.
CREATE TABLE shard (
    queue bigint PRIMARY KEY,
    name text NOT NULL,
    owner bigint,
    fence bigint NOT NULL DEFAULT 0,
    since timestamptz NOT NULL DEFAULT clock_timestamp(),
    asked_by bigint
) WITH (fillfactor = 50);

-- rank is 5 less the precedence: an index lists the highest precedence first. xact and seq tell other
-- nodes what came since they looked.
CREATE TABLE entry (
    rank smallint NOT NULL,
    id bigint NOT NULL,
    queue bigint NOT NULL,
    body bigint,
    seq bigint NOT NULL DEFAULT nextval('entries'),
    xact xid8 NOT NULL DEFAULT pg_current_xact_id(),
    record bytea NOT NULL,
    PRIMARY KEY (rank, id)
) WITH (
    autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_cost_delay = 0, toast.autovacuum_vacuum_cost_delay = 0
);
ALTER TABLE entry ALTER record SET STORAGE EXTERNAL;
CREATE INDEX entry_queue ON entry (queue, rank, id);
CREATE INDEX entry_body ON entry (body) WHERE body IS NOT NULL;
CREATE INDEX entry_news ON entry (queue, xact, seq);

CREATE TABLE body (
    id bigint PRIMARY KEY,
    content bigint NOT NULL
) WITH (
    autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_cost_delay = 0
);

-- octets: a content of up to 1 MiB; a longer one is in parts. owner: the run that receives it, until a
-- commit names it; refs counts the bodies that have it. sums: XXH3 of each 64 KiB.
CREATE TABLE content (
    id bigint PRIMARY KEY,
    length bigint NOT NULL DEFAULT 0,
    refs integer NOT NULL DEFAULT 0,
    owner bigint,
    sums bytea,
    octets bytea
) WITH (
    autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_cost_delay = 0, toast.autovacuum_vacuum_cost_delay = 0
);
ALTER TABLE content ALTER octets SET STORAGE EXTERNAL;
CREATE INDEX content_free ON content (owner) WHERE refs = 0;

CREATE TABLE part (
    content bigint NOT NULL,
    at bigint NOT NULL,
    sums bytea NOT NULL,
    octets bytea NOT NULL,
    PRIMARY KEY (content, at)
) WITH (
    autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_cost_delay = 0, toast.autovacuum_vacuum_cost_delay = 0
);
ALTER TABLE part ALTER octets SET STORAGE EXTERNAL;

-- Notes on a content that is being received, each behind `at` octets with that digest.
CREATE TABLE note (
    content bigint NOT NULL,
    number integer NOT NULL,
    at bigint NOT NULL,
    digest bigint NOT NULL,
    octets bytea NOT NULL,
    PRIMARY KEY (content, number)
);

CREATE TABLE seen (
    key bytea PRIMARY KEY,
    until bigint NOT NULL,
    record bytea NOT NULL
) WITH (
    autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX seen_until ON seen (until);

CREATE TABLE meta (
    name text PRIMARY KEY,
    value bytea NOT NULL
) WITH (fillfactor = 50);
