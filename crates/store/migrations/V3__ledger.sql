-- Grants, and the blocks of bytes that are held on them. The arithmetic is that of crates/ledger.

create table byte_grant (
    byte_grant uuid primary key,
    network integer not null references network,
    account uuid not null references account,
    bytes bigint not null check (bytes > 0),
    starts_at timestamptz not null,
    expires_at timestamptz not null check (expires_at > starts_at),
    created_at timestamptz not null default now()
);
create index byte_grant_account on byte_grant (account, expires_at);

create table grant_slice (
    byte_grant uuid not null references byte_grant,
    slice smallint not null check (slice between 0 and 15),
    bytes bigint not null check (bytes >= 0),
    primary key (byte_grant, slice)
);

-- Bytes that contracts hold until a minute (since 1970) begins; from then on the row counts no more.
create table hold (
    byte_grant uuid not null,
    slice smallint not null,
    minute integer not null,
    bytes bigint not null check (bytes >= 0),
    primary key (byte_grant, slice, minute)
);
create index hold_minute on hold (minute);

create table contract (
    contract uuid primary key,
    network integer not null,
    account uuid not null references account,
    -- The login of the hosted proxy that it serves.
    proxy_account text,
    opener uuid not null references client,
    -- Chosen by the opener: a request that is sent twice holds once.
    request uuid not null,
    byte_grant uuid not null,
    slice smallint not null,
    bytes bigint not null check (bytes > 0),
    minute integer not null,
    created_at timestamptz not null,
    expires_at timestamptz not null,
    unique (opener, request)
);
create index contract_created_at on contract (created_at);

-- Contracts without an outcome, and when they are due: what the worker reads never grows with history.
create table open_contract (
    contract uuid primary key references contract,
    account uuid not null,
    proxy_account text,
    due_at timestamptz not null
);
create index open_contract_due_at on open_contract (due_at);
create index open_contract_account on open_contract (account, proxy_account);

-- The worker's side. A contract has one outcome: that it cannot be written twice is what keeps it from being charged twice.
create table contract_outcome (
    contract uuid primary key,
    -- What the relays reported, and what was charged of it.
    used_bytes bigint not null check (used_bytes >= 0),
    charged_bytes bigint not null check (charged_bytes >= 0 and charged_bytes <= used_bytes),
    settled_at timestamptz not null default now()
);
create index contract_outcome_settled_at on contract_outcome (settled_at);

create table grant_balance (
    byte_grant uuid not null,
    slice smallint not null,
    spent_bytes bigint not null check (spent_bytes >= 0),
    primary key (byte_grant, slice)
);

-- What has been given back of `hold` before its minute.
create table hold_release (
    byte_grant uuid not null,
    slice smallint not null,
    minute integer not null,
    bytes bigint not null check (bytes >= 0),
    primary key (byte_grant, slice, minute)
);
create index hold_release_minute on hold_release (minute);

-- Free bytes of one slice at a time.
create function slice_free(the_grant uuid, the_slice smallint, at_time timestamptz) returns bigint
language sql stable as $$
    select greatest(0,
        (select bytes from grant_slice where byte_grant = the_grant and slice = the_slice)
        - coalesce((select spent_bytes from grant_balance where byte_grant = the_grant and slice = the_slice), 0)
        - coalesce((select sum(hold.bytes - coalesce(hold_release.bytes, 0))
            from hold left join hold_release using (byte_grant, slice, minute)
            where byte_grant = the_grant and slice = the_slice
              and minute > extract(epoch from at_time) / 60), 0))::bigint
$$;

-- Admits a contract, or says why not. One call is one statement and one transaction. Each query inside sees what was
-- committed before it; so what is read after the slice's row is locked is what stands.
create function admit_contract(
    the_contract uuid, the_network integer, the_account uuid, the_proxy_account text, the_opener uuid,
    the_request uuid, wanted bigint, at_least bigint, at_time timestamptz, until timestamptz, due timestamptz,
    until_minute integer, most_open integer, most_open_of_login integer, first_slice integer,
    out verdict text, out admitted uuid, out admitted_bytes bigint, out ends_at timestamptz, out free_again_at timestamptz
) language plpgsql as $$
declare
    earlier record;
    part record;
    free bigint;
    first_minute integer;
    has_grant boolean := false;
    has_live_grant boolean := false;
begin
    select c.contract, c.bytes, c.expires_at into earlier
        from contract c where c.opener = the_opener and c.request = the_request;
    if found then
        verdict := 'admitted';
        admitted := earlier.contract; admitted_bytes := earlier.bytes; ends_at := earlier.expires_at;
        return;
    end if;
    perform from account a where a.account = the_account and a.network = the_network and a.disabled_at is null;
    if not found then verdict := 'account_disabled'; return; end if;
    if (select count(*) from (select from open_contract o where o.account = the_account limit most_open) as few) >= most_open
    then verdict := 'limit_contracts'; return; end if;
    if the_proxy_account is not null and most_open_of_login > 0 and (select count(*) from (select from open_contract o
        where o.account = the_account and o.proxy_account = the_proxy_account limit most_open_of_login) as few) >= most_open_of_login
    then verdict := 'limit_contracts'; return; end if;

    for part in
        select s.byte_grant, s.slice, g.starts_at <= at_time and g.expires_at > at_time as live,
            least(until, g.expires_at) as until
        from byte_grant g join grant_slice s using (byte_grant)
        where g.account = the_account and g.network = the_network and g.expires_at > at_time
        order by g.expires_at, g.byte_grant, (s.slice - first_slice + 16) % 16
    loop
        has_grant := true;
        continue when not part.live;
        has_live_grant := true;
        -- A first look without the lock: slices that are used up cost no wait.
        continue when slice_free(part.byte_grant, part.slice, at_time) < at_least;
        perform from grant_slice s where s.byte_grant = part.byte_grant and s.slice = part.slice for no key update;
        free := slice_free(part.byte_grant, part.slice, at_time);
        continue when free < at_least;

        admitted_bytes := least(greatest(wanted, at_least), free);
        insert into contract as c values (the_contract, the_network, the_account, the_proxy_account, the_opener, the_request,
            part.byte_grant, part.slice, admitted_bytes, until_minute, at_time, part.until)
            on conflict (opener, request) do nothing;
        if not found then
            -- The same request at the same time: the other one has the block.
            select c.contract, c.bytes, c.expires_at into earlier
                from contract c where c.opener = the_opener and c.request = the_request;
            verdict := 'admitted';
            admitted := earlier.contract; admitted_bytes := earlier.bytes; ends_at := earlier.expires_at;
            return;
        end if;
        insert into open_contract values (the_contract, the_account, the_proxy_account, due);
        insert into hold as h values (part.byte_grant, part.slice, until_minute, admitted_bytes)
            on conflict (byte_grant, slice, minute) do update set bytes = h.bytes + excluded.bytes;
        verdict := 'admitted'; admitted := the_contract; ends_at := part.until;
        return;
    end loop;

    if not has_grant then
        has_grant := exists (select from byte_grant g where g.account = the_account and g.network = the_network);
        verdict := case when has_grant then 'grant_expired' else 'no_grant' end;
    elsif not has_live_grant then
        verdict := 'grant_expired';
    else
        verdict := 'grant_spent';
        select min(h.minute) into first_minute
            from byte_grant g join hold h using (byte_grant) left join hold_release r using (byte_grant, slice, minute)
            where g.account = the_account and g.network = the_network
              and g.starts_at <= at_time and g.expires_at > at_time
              and h.minute > extract(epoch from at_time) / 60 and h.bytes > coalesce(r.bytes, 0);
        free_again_at := to_timestamp(first_minute::double precision * 60);
    end if;
end
$$;

-- Settles contracts that are due: counts what was reported, charges what the block and the grant have room for, gives the
-- hold back. One call at a time: a second one that comes in between finds nothing to do.
create function settle_contracts(at_time timestamptz, most integer, out settled bigint, out used bigint, out charged bigint)
language plpgsql as $$
declare
    part record;
    reported bigint;
    paid bigint;
begin
    settled := 0; used := 0; charged := 0;
    if not pg_try_advisory_xact_lock(hashtextextended('settle_contracts', 0)) then return; end if;
    for part in
        with due as (
            delete from open_contract where contract in (
                select o.contract from open_contract o where o.due_at <= at_time
                order by o.due_at limit most)
            returning contract)
        select c.* from due join contract c using (contract) order by c.byte_grant, c.slice, c.contract
    loop
        select coalesce(sum(u.bytes), 0) into reported from usage u where u.contract = part.contract;
        paid := charge_slice(part.byte_grant, part.slice, least(reported, part.bytes));
        -- A second outcome is impossible, and takes everything back that belongs to it.
        insert into contract_outcome values (part.contract, reported, paid, at_time);
        insert into hold_release as r values (part.byte_grant, part.slice, part.minute, part.bytes)
            on conflict (byte_grant, slice, minute) do update set bytes = r.bytes + excluded.bytes;
        settled := settled + 1; used := used + reported; charged := charged + paid;
    end loop;
end
$$;

-- Adds to what is spent of a slice, but no more than it has, and returns what was added.
create function charge_slice(the_grant uuid, the_slice smallint, amount bigint) returns bigint
language plpgsql as $$
declare
    given bigint;
    spent bigint;
    added bigint;
begin
    select s.bytes into given from grant_slice s where s.byte_grant = the_grant and s.slice = the_slice;
    insert into grant_balance as b values (the_grant, the_slice, 0)
        on conflict (byte_grant, slice) do update set spent_bytes = b.spent_bytes returning b.spent_bytes into spent;
    added := greatest(0, least(amount, coalesce(given, 0) - spent));
    update grant_balance b set spent_bytes = b.spent_bytes + added
        where b.byte_grant = the_grant and b.slice = the_slice and added > 0;
    return added;
end
$$;

-- Charges what was reported behind a contract's outcome. Looks only at reports of a window of time; doing it again
-- changes nothing, because it compares what stands with the sum of all reports.
create function settle_late(since timestamptz, until timestamptz, out settled bigint, out used bigint, out charged bigint)
language plpgsql as $$
declare
    part record;
    more bigint;
    paid bigint;
begin
    settled := 0; used := 0; charged := 0;
    if not pg_try_advisory_xact_lock(hashtextextended('settle_contracts', 0)) then
        raise lock_not_available using message = 'contracts are being settled';
    end if;
    for part in
        select c.*, o.used_bytes, o.charged_bytes,
            (select sum(u.bytes) from usage u where u.contract = c.contract)::bigint as reported
        from contract_outcome o join contract c using (contract)
        where o.contract in (select u.contract from usage u where u.recorded_at > since and u.recorded_at <= until)
        order by c.byte_grant, c.slice, c.contract
    loop
        more := part.reported - part.used_bytes;
        continue when more <= 0;
        paid := charge_slice(part.byte_grant, part.slice, least(more, part.bytes - part.charged_bytes));
        update contract_outcome o set used_bytes = part.reported, charged_bytes = o.charged_bytes + paid
            where o.contract = part.contract;
        settled := settled + 1; used := used + more; charged := charged + paid;
    end loop;
end
$$;
