-- Who belongs to a network, and the documents that prove it. Tables are declared in src/catalogue.rs: a table that is
-- not there fails a test.

create table network (
    network integer generated always as identity primary key,
    name bytea not null unique check (octet_length(name) = 32),
    created_at timestamptz not null default now()
);

create table account (
    account uuid primary key,
    network integer not null references network,
    name text not null check (octet_length(name) between 1 and 64),
    -- PBKDF2, as `api` writes it; empty: nobody signs in.
    password text not null,
    operator boolean not null,
    created_at timestamptz not null default now(),
    disabled_at timestamptz,
    unique (network, name)
);

create table account_session (
    bearer_sha256 bytea primary key check (octet_length(bearer_sha256) = 32),
    account uuid not null references account,
    created_at timestamptz not null default now(),
    expires_at timestamptz not null
);
create index account_session_expires_at on account_session (expires_at);

create table client (
    client uuid primary key,
    network integer not null references network,
    -- Chosen by the client: a registration that is sent twice is one.
    request uuid not null,
    role smallint not null check (role between 1 and 3),
    identity bytea not null check (octet_length(identity) = 64),
    thumbprint bytea not null check (octet_length(thumbprint) = 32),
    account uuid not null references account,
    label text not null check (octet_length(label) <= 64),
    software text not null check (octet_length(software) <= 64),
    country text check (country ~ '^[A-Z]{2}$'),
    created_at timestamptz not null default now(),
    disabled_at timestamptz,
    unique (network, request),
    unique (network, thumbprint)
);
create index client_account on client (account, created_at desc);
create index client_provider on client (network, country) where role = 1 and disabled_at is null;

create table join_code (
    code_sha256 bytea primary key check (octet_length(code_sha256) = 32),
    network integer not null references network,
    account uuid not null references account,
    role smallint not null check (role between 1 and 3),
    created_at timestamptz not null default now(),
    expires_at timestamptz not null,
    used_by uuid
);
create index join_code_expires_at on join_code (expires_at);

create table revocation (
    network integer not null references network,
    client uuid not null references client,
    cause text not null check (octet_length(cause) <= 200),
    revoked_at timestamptz not null default now(),
    primary key (network, client)
);

create index revocation_revoked_at on revocation (network, revoked_at);

-- Signed by the root key; the newest only, whose number only grows.
create table trust_document (
    network integer not null references network,
    kind smallint not null check (kind between 1 and 2),
    number bigint not null check (number >= 0),
    body text not null check (octet_length(body) <= 4194304),
    signed_at timestamptz not null default now(),
    primary key (network, kind)
);
