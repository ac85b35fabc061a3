-- What is used beyond a hold is debited all the same; an outage does not let holds expire; blocks that were given without the
-- database come into the ledger; late reports are looked at in bounded batches. The arithmetic is that of crates/ledger.

-- The ledger's sign of life: one row, moved by the apis for as long as they reach the database.
create table ledger_pulse (
    one boolean primary key check (one),
    beat_at timestamptz not null
);

-- Times without one.
create table ledger_gap (
    from_at timestamptz primary key,
    until_at timestamptz not null check (until_at > from_at)
);
create index ledger_gap_until_at on ledger_gap (until_at);

-- What accounts have used beyond everything that their grants gave.
create table account_debt (
    account uuid primary key,
    bytes bigint not null check (bytes >= 0),
    looked_at timestamptz not null
);
create index account_debt_looked_at on account_debt (looked_at) where bytes > 0;

-- A block that was given without the database may have no hold: then it has no grant, slice and minute.
alter table contract alter column byte_grant drop not null;
alter table contract alter column slice drop not null;
alter table contract alter column minute drop not null;
alter table contract add column offline boolean not null default false;

-- Where a pass over late reports stopped: it is resumed there.
alter table worker_cursor add column pass_until timestamptz;
alter table worker_cursor add column pass_at timestamptz;
alter table worker_cursor add column pass_contract uuid;

create function ledger_least_gap() returns interval language sql immutable as $$ select interval '30 seconds' $$;

-- The ledger lives. A pause since the last time that is a gap is written down: once, whoever comes first.
create function beat_ledger() returns void language plpgsql as $$
declare
    before timestamptz;
begin
    insert into ledger_pulse values (true, now()) on conflict do nothing;
    if found then return; end if;
    select p.beat_at into before from ledger_pulse p for update;
    if now() - before > ledger_least_gap() then
        insert into ledger_gap values (before, now()) on conflict do nothing;
    end if;
    update ledger_pulse set beat_at = now() where beat_at < now();
end
$$;

-- By how many minutes holds count longer now: the gaps of the last day, and the one that nobody has written down yet. So what
-- expired in an outage is held from the first question on, whoever asks it.
create function ledger_extension() returns integer language sql stable as $$
    select least(1440, coalesce(sum(ceil(extract(epoch from until_at - from_at) / 60)), 0))::integer from (
        select from_at, until_at from ledger_gap where until_at > now() - interval '1 day'
        union all
        select beat_at, now() from ledger_pulse where now() - beat_at > ledger_least_gap()
    ) as gaps
$$;

-- Free bytes of one slice at a time.
create or replace function slice_free(the_grant uuid, the_slice smallint, at_time timestamptz) returns bigint
language sql stable as $$
    select greatest(0,
        (select bytes from grant_slice where byte_grant = the_grant and slice = the_slice)
        - coalesce((select spent_bytes from grant_balance where byte_grant = the_grant and slice = the_slice), 0)
        - coalesce((select sum(hold.bytes - coalesce(hold_release.bytes, 0))
            from hold left join hold_release using (byte_grant, slice, minute)
            where byte_grant = the_grant and slice = the_slice
              and minute > extract(epoch from at_time) / 60 - (select ledger_extension())), 0))::bigint
$$;

-- Admits a contract, or says why not. One call is one statement and one transaction. Each query inside sees what was
-- committed before it; so what is read after the slice's row is locked is what stands.
create or replace function admit_contract(
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
    perform from account_debt d where d.account = the_account and d.bytes > 0;
    if found then verdict := 'grant_overdrawn'; return; end if;

    for part in
        select s.byte_grant, s.slice,
            g.starts_at <= at_time and g.expires_at > at_time + interval '30 seconds' as live,
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
        insert into contract as c (contract, network, account, proxy_account, opener, request, byte_grant, slice, bytes, minute,
                created_at, expires_at)
            values (the_contract, the_network, the_account, the_proxy_account, the_opener, the_request,
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
        select min(h.minute) + ledger_extension() into first_minute
            from byte_grant g join hold h using (byte_grant) left join hold_release r using (byte_grant, slice, minute)
            where g.account = the_account and g.network = the_network
              and g.starts_at <= at_time and g.expires_at > at_time
              and h.minute > extract(epoch from at_time) / 60 - (select ledger_extension())
              and h.bytes > coalesce(r.bytes, 0);
        free_again_at := to_timestamp(first_minute::double precision * 60);
    end if;
end
$$;

-- Takes a block into the ledger that an api gave without the database; again is the same. It is held if a slice has room for the
-- whole of it. It was given: so there is no refusal.
create function bring_in_contract(
    the_contract uuid, the_network integer, the_account uuid, the_proxy_account text, the_opener uuid, the_request uuid,
    the_bytes bigint, given_at timestamptz, ends_at timestamptz, due timestamptz, until_minute integer, at_time timestamptz
) returns boolean language plpgsql as $$
declare
    part record;
    held_on uuid;
    held_slice smallint;
    held_minute integer;
begin
    perform from contract c where c.contract = the_contract;
    if found then return false; end if;
    -- The same request may have been admitted before the outage, with an answer that was lost.
    perform from contract c where c.opener = the_opener and c.request = the_request;
    if found then the_request := the_contract; end if;
    if until_minute > extract(epoch from at_time) / 60 then
        for part in
            select s.byte_grant, s.slice from byte_grant g join grant_slice s using (byte_grant)
            where g.account = the_account and g.network = the_network and g.starts_at <= at_time and g.expires_at > at_time
            order by g.expires_at, g.byte_grant, s.slice
        loop
            continue when slice_free(part.byte_grant, part.slice, at_time) < the_bytes;
            perform from grant_slice s where s.byte_grant = part.byte_grant and s.slice = part.slice for no key update;
            if slice_free(part.byte_grant, part.slice, at_time) >= the_bytes then
                held_on := part.byte_grant; held_slice := part.slice; held_minute := until_minute;
                exit;
            end if;
        end loop;
    end if;
    insert into contract (contract, network, account, proxy_account, opener, request, byte_grant, slice, bytes, minute,
            created_at, expires_at, offline)
        values (the_contract, the_network, the_account, the_proxy_account, the_opener, the_request, held_on, held_slice,
            the_bytes, held_minute, given_at, ends_at, true)
        on conflict (contract) do nothing;
    if not found then return false; end if;
    insert into open_contract values (the_contract, the_account, the_proxy_account, due);
    if held_on is not null then
        insert into hold as h values (held_on, held_slice, held_minute, the_bytes)
            on conflict (byte_grant, slice, minute) do update set bytes = h.bytes + excluded.bytes;
    end if;
    return true;
end
$$;

-- What is charged of a contract's reports: of each start of a relay what it can have carried, the block and the allowance on top of
-- it (crates/ledger, offline). So a report that is out of all proportion costs no customer more than that.
create function offline_allowance(block bigint) returns bigint language sql immutable as $$
    select least(greatest(block / 4, 8388608), 67108864)
$$;
create function contract_usage(the_contract uuid, block bigint, out reported bigint, out billed bigint)
language sql stable as $$
    -- A turn adds up some hundreds of them: no sum leaves a bigint, whatever a relay reports.
    select least(coalesce(sum(part.bytes), 0), 9007199254740992)::bigint,
        least(coalesce(sum(least(part.bytes, block + offline_allowance(block))), 0), 9007199254740992)::bigint
    from (select sum(u.bytes) as bytes from usage u where u.contract = the_contract group by u.relay, u.relay_epoch) as part
$$;

-- Adds to what is spent of a slice, but no more than is free, and returns what was added. What others hold stays theirs.
create function spend_free(the_grant uuid, the_slice smallint, amount bigint, at_time timestamptz) returns bigint
language plpgsql as $$
declare
    added bigint := least(amount, slice_free(the_grant, the_slice, at_time));
begin
    if added <= 0 then return 0; end if;
    insert into grant_balance as b values (the_grant, the_slice, added)
        on conflict (byte_grant, slice) do update set spent_bytes = b.spent_bytes + excluded.spent_bytes;
    return added;
end
$$;

-- Charges an account: the slice named first, then the rest of that grant, then the account's live grants. Returns what there was
-- no room for.
create function spend_somewhere(the_account uuid, the_grant uuid, the_slice smallint, amount bigint, at_time timestamptz)
returns bigint language plpgsql as $$
declare
    rest bigint := amount;
    part record;
begin
    if rest > 0 and the_grant is not null then
        rest := rest - spend_free(the_grant, the_slice, rest, at_time);
    end if;
    if rest > 0 then
        for part in
            select s.byte_grant, s.slice, 0 as place, null::timestamptz as expires_at
                from grant_slice s where s.byte_grant = the_grant and s.slice <> the_slice
            union all
            select s.byte_grant, s.slice, 1, g.expires_at from byte_grant g join grant_slice s using (byte_grant)
                where g.account = the_account and g.starts_at <= at_time and g.expires_at > at_time
                  and g.byte_grant is distinct from the_grant
            order by 3, 4, 1, 2
        loop
            rest := rest - spend_free(part.byte_grant, part.slice, rest, at_time);
            exit when rest <= 0;
        end loop;
    end if;
    return rest;
end
$$;

-- Charges an account, and what there is no room for becomes its debt. Returns that.
create function charge_account(the_account uuid, the_grant uuid, the_slice smallint, amount bigint, at_time timestamptz)
returns bigint language plpgsql as $$
declare
    rest bigint := spend_somewhere(the_account, the_grant, the_slice, amount, at_time);
begin
    if rest > 0 then
        insert into account_debt as d values (the_account, rest, at_time)
            on conflict (account) do update set bytes = d.bytes + excluded.bytes;
    end if;
    return rest;
end
$$;

-- Takes what has become free for debts, of those that were looked at longest ago.
create function cover_debts(at_time timestamptz, most integer) returns bigint language plpgsql as $$
declare
    part record;
    rest bigint;
    covered bigint := 0;
begin
    -- Of those who have a grant that could pay: what abandoned accounts owe must not make others wait.
    for part in select d.account, d.bytes from account_debt d where d.bytes > 0
            and exists (select from byte_grant g where g.account = d.account
                and g.starts_at <= at_time and g.expires_at > at_time)
        order by d.looked_at limit most
    loop
        rest := spend_somewhere(part.account, null, null, part.bytes, at_time);
        update account_debt set bytes = rest, looked_at = at_time where account = part.account;
        covered := covered + part.bytes - rest;
    end loop;
    return covered;
end
$$;

drop function settle_contracts(timestamptz, integer);
drop function settle_late(timestamptz, timestamptz);
drop function charge_slice(uuid, smallint, bigint);

-- Settles contracts that are due: counts what was reported, gives the hold back, charges what was used. One call at a time: a
-- second one that comes in between finds nothing to do.
create function settle_contracts(
    at_time timestamptz, most integer, out settled bigint, out used bigint, out charged bigint, out overdrawn bigint
) language plpgsql as $$
declare
    part record;
    counted record;
    until timestamptz := at_time;
begin
    settled := 0; used := 0; charged := 0; overdrawn := 0;
    if not pg_try_advisory_xact_lock(hashtextextended('settle_contracts', 0)) then return; end if;
    -- After a gap, relays still send what they could not: what became due in it waits as long as for any report.
    select least(at_time,
        (select min(g.from_at) from ledger_gap g where g.until_at > now() - interval '60 seconds'),
        (select p.beat_at from ledger_pulse p where now() - p.beat_at > ledger_least_gap())) into until;
    for part in
        with due as (
            delete from open_contract where contract in (
                select o.contract from open_contract o where o.due_at <= until
                order by o.due_at limit most)
            returning contract)
        select c.* from due join contract c using (contract) order by c.byte_grant, c.slice, c.contract
    loop
        select * into counted from contract_usage(part.contract, part.bytes);
        -- A second outcome is impossible, and takes everything back that belongs to it.
        insert into contract_outcome values (part.contract, counted.reported, counted.billed, at_time);
        if part.byte_grant is not null then
            insert into hold_release as r values (part.byte_grant, part.slice, part.minute, part.bytes)
                on conflict (byte_grant, slice, minute) do update set bytes = r.bytes + excluded.bytes;
        end if;
        overdrawn := overdrawn + charge_account(part.account, part.byte_grant, part.slice, counted.billed, at_time);
        settled := settled + 1; used := used + counted.reported; charged := charged + counted.billed;
    end loop;
    perform cover_debts(at_time, 50);
end
$$;

-- Charges what was reported behind a contract's outcome: a bounded number of contracts a call, the next call goes on behind them. A
-- pass looks at reports since the last one, and at the minute before: a report is dated by the begin of its transaction, and seen
-- at its end. Doing it again changes nothing, because it compares what was charged with the sum of all reports.
create function settle_late(most integer, out settled bigint, out used bigint, out charged bigint, out overdrawn bigint, out more boolean)
language plpgsql as $$
declare
    place record;
    part record;
    counted record;
    looked_at bigint := 0;
    at timestamptz;
    after uuid;
begin
    settled := 0; used := 0; charged := 0; overdrawn := 0; more := false;
    if not pg_try_advisory_xact_lock(hashtextextended('settle_contracts', 0)) then more := true; return; end if;
    insert into worker_cursor (name, position)
        values ('late_reports', (extract(epoch from now() - interval '1 hour') * 1000)::bigint) on conflict do nothing;
    update worker_cursor w set pass_until = now(), pass_contract = '00000000-0000-0000-0000-000000000000',
            pass_at = to_timestamp(w.position::double precision / 1000) - interval '60 seconds'
        where w.name = 'late_reports' and w.pass_until is null;
    select w.pass_until, w.pass_at, w.pass_contract into place from worker_cursor w where w.name = 'late_reports';
    at := place.pass_at; after := place.pass_contract;
    for part in
        select distinct u.recorded_at, u.contract from usage u
        where u.recorded_at >= place.pass_at and u.recorded_at <= place.pass_until
          and (u.recorded_at, u.contract) > (place.pass_at, place.pass_contract)
        order by u.recorded_at, u.contract limit most
    loop
        looked_at := looked_at + 1; at := part.recorded_at; after := part.contract;
        declare
            stands record;
        begin
            select c.account, c.byte_grant, c.slice, c.bytes, o.used_bytes, o.charged_bytes into stands
                from contract_outcome o join contract c using (contract) where o.contract = part.contract;
            continue when not found;
            select * into counted from contract_usage(part.contract, stands.bytes);
            continue when counted.reported <= stands.used_bytes;
            update contract_outcome set used_bytes = counted.reported, charged_bytes = greatest(counted.billed, charged_bytes)
                where contract = part.contract;
            overdrawn := overdrawn + charge_account(stands.account, stands.byte_grant, stands.slice,
                greatest(0, counted.billed - stands.charged_bytes), now());
            settled := settled + 1; used := used + counted.reported - stands.used_bytes;
            charged := charged + greatest(0, counted.billed - stands.charged_bytes);
        end;
    end loop;
    more := looked_at >= most;
    if more then
        update worker_cursor set pass_at = at, pass_contract = after, moved_at = now() where name = 'late_reports';
    else
        update worker_cursor w set pass_until = null, pass_at = null, pass_contract = null, moved_at = now(),
                position = greatest(w.position, (extract(epoch from place.pass_until) * 1000)::bigint)
            where w.name = 'late_reports';
    end if;
end
$$;
