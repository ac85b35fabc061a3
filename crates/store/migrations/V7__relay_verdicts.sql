-- Who says what about relays. `relay_beat` is a relay's own word; these are the words of its peers, and of the worker.

-- What relays say of others that are late.
create table relay_word (
    relay uuid not null,
    about uuid not null,
    reaches boolean not null,
    told_at timestamptz not null,
    primary key (relay, about)
);
create index relay_word_told_at on relay_word (told_at);

-- The worker's word. No row: nothing speaks against the relay.
create table relay_verdict (
    relay uuid primary key,
    network integer not null,
    -- The start and the last beat that it is about: it falls with the next one.
    epoch bigint not null,
    beat_at timestamptz not null,
    state text not null check (state in ('alive', 'late', 'unknown', 'suspect', 'dead')),
    cause text not null check (octet_length(cause) <= 64),
    since timestamptz not null default now(),
    judged_at timestamptz not null default now(),
    -- When it was removed last, whether or not it has come back.
    removed_at timestamptz
);
create index relay_verdict_judged_at on relay_verdict (judged_at);

-- That a worker lives, that its writes arrive by the way that all services take, and whether it holds its judgement back.
create table worker_beat (
    worker uuid primary key,
    network integer not null,
    beat_at timestamptz not null,
    -- Why nobody is removed; null: whoever is dead is.
    hold text check (octet_length(hold) <= 64),
    hold_since timestamptz,
    relays integer not null,
    late integer not null
);
create index worker_beat_beat_at on worker_beat (beat_at);
