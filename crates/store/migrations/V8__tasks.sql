-- The worker's work. What is due later waits in `task_future`, by the hour; what is due stands in `task_ready`, which is bounded,
-- so that a claim costs the same however much waits; what was done goes to `task_done`, by the day. Timers that run longer than
-- a day stand on what they belong to, not here.

create schema task_part;

create table task_future (
    task uuid not null,
    network integer not null,
    kind text not null check (octet_length(kind) between 1 and 64),
    lane smallint not null,
    -- What it is done for: it goes with it.
    owner_kind smallint,
    owner uuid,
    payload text not null check (octet_length(payload) <= 8192),
    due_at timestamptz not null,
    primary key (due_at, task)
) partition by range (due_at);
create index task_future_lane on task_future (network, lane, due_at);
create index task_future_owner on task_future (owner, owner_kind) where owner is not null;

create table task_ready (
    task uuid primary key,
    network integer not null,
    kind text not null check (octet_length(kind) between 1 and 64),
    lane smallint not null,
    owner_kind smallint,
    owner uuid,
    payload text not null check (octet_length(payload) <= 8192),
    due_at timestamptz not null,
    -- When it may be claimed: for one that is claimed, when its lease ends.
    ready_at timestamptz not null,
    -- A recurring job: one row for ever.
    repeat_ms integer check (repeat_ms > 0),
    -- Failures in a row.
    failures integer not null default 0,
    claimed_by uuid
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
create index task_ready_lane on task_ready (network, lane, ready_at);
create index task_ready_owner on task_ready (owner, owner_kind) where owner is not null;
create index task_ready_claimed_by on task_ready (claimed_by) where claimed_by is not null;

create table task_done (
    task uuid not null,
    network integer not null,
    kind text not null,
    lane smallint not null,
    owner_kind smallint,
    owner uuid,
    -- 'done', or what it failed with.
    outcome text not null check (octet_length(outcome) <= 256),
    failures integer not null,
    worker uuid not null,
    due_at timestamptz not null,
    done_at timestamptz not null default now()
) partition by range (done_at);

-- Makes the partitions of the next hours and days, and drops those that are over: of what is due only if they are empty, of what
-- was done after so many days. Called again and again.
create function task_partitions(hours integer, days integer, keep_days integer, out made integer, out dropped integer)
language plpgsql security definer set search_path = pg_catalog, public set lock_timeout = '500ms' set timezone = 'UTC' as $$
declare
    slot timestamptz;
    part text;
    span interval;
    parent text;
    over boolean;
begin
    made := 0; dropped := 0;
    for parent, slot, span, part in
        select 'task_future', s, interval '1 hour', 'task_future_' || to_char(s, 'YYYYMMDDHH24')
            from generate_series(date_trunc('hour', now()), now() + hours * interval '1 hour', interval '1 hour') s
        union all
        select 'task_done', s, interval '1 day', 'task_done_' || to_char(s, 'YYYYMMDD')
            from generate_series(date_trunc('day', now()), now() + days * interval '1 day', interval '1 day') s
    loop
        continue when to_regclass('task_part.' || part) is not null;
        -- Made apart and attached: readers of the others are not held up.
        execute format('create table task_part.%I (like public.%I including defaults including constraints)', part, parent);
        execute format('alter table public.%I attach partition task_part.%I for values from (%L) to (%L)',
            parent, part, slot, slot + span);
        made := made + 1;
    end loop;
    for parent, part, slot in
        select p.relname, c.relname,
            to_timestamp(substring(c.relname from '\d+$'), case p.relname when 'task_done' then 'YYYYMMDD' else 'YYYYMMDDHH24' end)
        from pg_inherits i join pg_class c on c.oid = i.inhrelid join pg_class p on p.oid = i.inhparent
        where i.inhparent in ('public.task_future'::regclass, 'public.task_done'::regclass)
    loop
        if parent = 'task_done' then
            over := slot + interval '1 day' < now() - keep_days * interval '1 day';
        elsif slot + interval '2 hours' < now() then
            execute format('select not exists (select from task_part.%I)', part) into over;
        else
            over := false;
        end if;
        continue when not over;
        begin
            execute format('drop table task_part.%I', part);
            dropped := dropped + 1;
        exception when lock_not_available then
            -- Somebody reads it: the next call comes soon.
            null;
        end;
    end loop;
end
$$;

-- Moves tasks that are due to where they are claimed, of each lane no more than there is room for. Row by row, so that each is
-- found by its key in its own partition, whatever the planner believes of the others.
create function promote_tasks(the_network integer, lanes smallint[], most_ready integer, most integer) returns bigint
language plpgsql as $$
declare
    the_lane smallint;
    room integer;
    due record;
    moved bigint := 0;
begin
    foreach the_lane in array lanes loop
        select most_ready - count(*) into room from (
            select from task_ready r where r.network = the_network and r.lane = the_lane limit most_ready) as few;
        continue when room <= 0;
        for due in
            select f.due_at, f.task from task_future f
            where f.network = the_network and f.lane = the_lane and f.due_at <= now()
            order by f.due_at limit least(room, most) for update skip locked
        loop
            with gone as (delete from task_future f where f.due_at = due.due_at and f.task = due.task returning f.*)
            insert into task_ready (task, network, kind, lane, owner_kind, owner, payload, due_at, ready_at)
            select task, network, kind, lane, owner_kind, owner, payload, due_at, due_at from gone
            -- Written twice, under two moments: it is there already.
            on conflict (task) do nothing;
            moved := moved + 1;
        end loop;
    end loop;
    return moved;
end
$$;

-- Enough to begin with: the worker goes on from here.
select task_partitions(2, 1, 7);
