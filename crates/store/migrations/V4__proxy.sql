-- Logins of the hosted proxy, and who left through which provider.

create table proxy_account (
    network integer not null references network,
    name text not null check (name ~ '^[a-z0-9_]{1,32}$'),
    account uuid not null references account,
    secret_sha256 bytea not null check (octet_length(secret_sha256) = 32),
    most_streams integer not null check (most_streams >= 0),
    streams_per_second integer not null check (streams_per_second >= 0),
    bytes_per_second bigint not null check (bytes_per_second >= 0),
    most_contracts integer not null check (most_contracts >= 0),
    selection text not null check (octet_length(selection) <= 200),
    created_at timestamptz not null default now(),
    disabled_at timestamptz,
    primary key (network, name)
);
create index proxy_account_account on proxy_account (account);

-- For the abuse look-up (provider, time, port -> account), for a bounded time.
create table exit_record (
    exit_record uuid primary key,
    network integer not null,
    account uuid not null,
    proxy_account text not null check (octet_length(proxy_account) <= 64),
    provider uuid not null,
    port integer not null check (port between 0 and 65535),
    opened_at timestamptz not null,
    closed_at timestamptz not null
);
create index exit_record_provider on exit_record (provider, opened_at);
create index exit_record_closed_at on exit_record (closed_at);

-- Where the worker's loops stopped.
create table worker_cursor (
    name text primary key check (octet_length(name) <= 64),
    position bigint not null,
    moved_at timestamptz not null default now()
);
