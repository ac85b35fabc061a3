-- Generations of pools: the worker builds them, the api signs and serves them.

create table pool_generation (
    network integer not null references network,
    -- The time that it was built at, in ms, or one more than the last: it grows also behind a restored backup.
    number bigint not null check (number >= 0),
    built_at timestamptz not null,
    -- When the worker last found that this is still so; a generation that is held is not confirmed.
    confirmed_at timestamptz not null,
    -- About how often the worker looks, at this size.
    every_ms bigint not null check (every_ms > 0),
    registered bigint not null check (registered >= 0),
    -- Why the next one was not published, while that is so.
    held_cause text check (octet_length(held_cause) <= 300),
    -- One element for each pool, in the order of the names.
    names text[] not null check (cardinality(names) <= 700),
    hashes bytea[] not null check (cardinality(hashes) = cardinality(names)),
    listed integer[] not null check (cardinality(listed) = cardinality(names)),
    connected integer[] not null check (cardinality(connected) = cardinality(names)),
    verified integer[] not null check (cardinality(verified) = cardinality(names)),
    primary key (network, number)
);

-- The bytes of a pool, by their SHA-256: they never change.
create table pool_blob (
    network integer not null references network,
    hash bytea not null check (octet_length(hash) = 32),
    body bytea not null check (octet_length(body) <= 8388608),
    -- The newest generation that names it.
    last_number bigint not null,
    primary key (network, hash)
);
create index pool_blob_last_number on pool_blob (network, last_number);
