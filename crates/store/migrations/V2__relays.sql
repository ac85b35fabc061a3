-- What relays say: that they live, who is connected to them, and how many bytes they moved. Without references to
-- other tables: a relay writes down what it saw.

create table relay_beat (
    relay uuid primary key,
    network integer not null,
    -- `host:port` that clients dial.
    address text not null check (octet_length(address) between 1 and 300),
    -- The relay's start; the newest wins.
    epoch bigint not null,
    connections integer not null check (connections >= 0),
    draining boolean not null,
    started_at timestamptz not null,
    beat_at timestamptz not null
);
create index relay_beat_network on relay_beat (network, beat_at);
create index relay_beat_beat_at on relay_beat (beat_at);

create table connection (
    client uuid not null,
    epoch bigint not null,
    relay uuid not null,
    relay_epoch bigint not null,
    network integer not null,
    software text not null check (octet_length(software) <= 64),
    connected_at timestamptz not null,
    disconnected_at timestamptz,
    -- A code of the link protocol (docs/protocol.md, 7); 0: not known.
    cause smallint,
    primary key (client, epoch, relay, relay_epoch)
);
create index connection_live on connection (network, client) where disconnected_at is null;
create index connection_live_relay on connection (relay, relay_epoch) where disconnected_at is null;
create index connection_disconnected_at on connection (disconnected_at) where disconnected_at is not null;

-- One row for each count that a relay reports; a repeated report is the same row.
create table usage (
    contract uuid not null,
    relay uuid not null,
    relay_epoch bigint not null,
    sequence bigint not null,
    bytes bigint not null check (bytes >= 0),
    recorded_at timestamptz not null default now(),
    primary key (contract, relay, relay_epoch, sequence)
);
create index usage_recorded_at on usage (recorded_at);
