-- No two users have one number of a mailbox: whoever had the second would read what the first has.

-- The number that every node gives to the mailbox of an address: the last 31 bits of the first eight octets of its
-- SHA-256 (`mailbox::machine::shared_number`).
CREATE FUNCTION mailbox_number(p_address text) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT ('x' || encode(substr(sha256(convert_to(p_address, 'UTF8')), 5, 4), 'hex'))::bit(32)::bigint & 2147483647
$$;

CREATE UNIQUE INDEX account_mailbox ON account (mailbox_number(address));
