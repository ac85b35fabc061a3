-- How processes hear of changes, and how the network knows that a new key is known everywhere.

-- That something changed; what holds now stands in its own table. Written in the transaction of the change.
create table change_log (
    change bigint generated always as identity primary key,
    network integer not null references network,
    -- 1: a client was disabled; 2: enabled; 3: revoked; 4: the key ring; 5: the revocation list.
    kind smallint not null check (kind between 1 and 5),
    -- The client.
    subject uuid check ((subject is not null) = (kind <= 3)),
    -- A reader goes by transactions, not by numbers: a lower number may be committed later.
    written_by xid8 not null default pg_current_xact_id(),
    changed_at timestamptz not null default now()
);
create index change_log_written_by on change_log (network, written_by);
create index change_log_changed_at on change_log (changed_at);

create index client_disabled_at on client (network, disabled_at) where disabled_at is not null;
create index account_disabled_at on account (network, disabled_at) where disabled_at is not null;

-- Which documents a verifier holds, and since when it has held that ring.
alter table relay_beat
    add column ring bigint not null default 0,
    add column ring_since timestamptz not null default now(),
    add column revocations bigint not null default 0;

create table api_beat (
    api uuid primary key,
    network integer not null,
    ring bigint not null,
    ring_since timestamptz not null,
    revocations bigint not null,
    -- Names of the token keys whose secrets it has, and of the one that it signs with.
    holds text[] not null,
    signs_with text,
    started_at timestamptz not null,
    beat_at timestamptz not null
);
create index api_beat_network on api_beat (network, beat_at);
create index api_beat_beat_at on api_beat (beat_at);

-- The next two are called by roles that may not read accounts (there are passwords in them), so they run as their owner.

-- How clients stand that have changed since a transaction: cause 0 is good standing, 1 revoked, 2 disabled, 3 its account
-- disabled.
create function changed_clients(the_network integer, since xid8, most integer)
returns table (client uuid, cause smallint, refused_at timestamptz)
language sql stable security definer set search_path = public, pg_temp as $$
    select c.client,
        (case when r.client is not null then 1 when c.disabled_at is not null then 2
            when a.disabled_at is not null then 3 else 0 end)::smallint,
        greatest(r.revoked_at, c.disabled_at, a.disabled_at)
    from (select distinct few.subject from (
            select l.subject from change_log l
            where l.network = the_network and l.written_by >= since and l.subject is not null limit most) few) changed
    join client c on c.client = changed.subject and c.network = the_network
    join account a on a.account = c.account
    left join revocation r on r.network = c.network and r.client = c.client
$$;

-- All clients that have been refused since a time, those refused last first.
create function refused_clients(the_network integer, since timestamptz, most integer)
returns table (client uuid, cause smallint, refused_at timestamptz)
language sql stable security definer set search_path = public, pg_temp as $$
    select c.client,
        (case when r.client is not null then 1 when c.disabled_at is not null then 2 else 3 end)::smallint,
        greatest(r.revoked_at, c.disabled_at, a.disabled_at)
    from (select d.client from client d where d.network = the_network and d.disabled_at >= since
        union select v.client from revocation v where v.network = the_network and v.revoked_at >= since
        union select o.client from account p join client o on o.account = p.account
            where p.network = the_network and p.disabled_at >= since) refused
    join client c on c.client = refused.client
    join account a on a.account = c.account
    left join revocation r on r.network = c.network and r.client = c.client
    order by 3 desc limit most
$$;
