use super::super::model::Database;
use super::Status::{Joint, NoEffect, NotBuilt};
use super::{
    CLIENT_DISCONNECT, COUNT, COUNT_FROM_1, DURATION, Kind, POOL_MODE, SESSION_STATE, Setting, field,
};

const SERVER_PORT: Kind = Kind::Integer { minimum: 1, maximum: 65535 };

#[rustfmt::skip] // One line a setting.
pub(super) const SETTINGS: &[Setting<Database>] = &[
    Setting::new("dbname", Kind::Text, "", field!(Database, dbname), "Name on the server; the same name if not given."),
    Setting::new("host", Kind::Text, "", Joint, "Name or address of the server; a path is the folder of its Unix socket; none is the usual folder."),
    Setting::new("port", SERVER_PORT, "5432", Joint, "Port of the server."),
    Setting::new("user", Kind::Text, "", field!(Database, user), "User to log in as, whoever the client is."),
    Setting::new("password", Kind::Text, "", field!(Database, password), "That user's password."),
    Setting::new("pool_size", COUNT_FROM_1, "", field!(Database, pool_size), "In place of `default_pool_size`."),
    Setting::new("min_pool_size", COUNT, "", field!(Database, min_pool_size), "In place of the general one."),
    Setting::new("max_db_connections", COUNT, "", field!(Database, max_db_connections), "In place of the general one."),
    Setting::new("query_wait_timeout", DURATION, "", field!(Database, query_wait_timeout), "In place of the general one."),
    Setting::new("query_timeout", DURATION, "", field!(Database, query_timeout), "In place of the general one.").own(),
    Setting::new("idle_transaction_timeout", DURATION, "", field!(Database, idle_transaction_timeout), "In place of the general one.").own(),
    Setting::new("transaction_timeout", DURATION, "", field!(Database, transaction_timeout), "In place of the general one.").own(),
    Setting::new("client_idle_timeout", DURATION, "", field!(Database, client_idle_timeout), "In place of the general one.").own(),
    Setting::new("server_lifetime", DURATION, "", field!(Database, server_lifetime), "In place of the general one."),
    Setting::new("client_disconnect", CLIENT_DISCONNECT, "", field!(Database, client_disconnect), "In place of the general one.").own(),
    Setting::new("session_state", SESSION_STATE, "", field!(Database, session_state), "In place of the general one.").own(),
    Setting::new("pool_mode", POOL_MODE, "", field!(Database, pool_mode), "In place of the general one."),
    Setting::new("connect_query", Kind::Text, "", field!(Database, connect_query), "Run on each new server connection."),
    Setting::new("client_encoding", Kind::Text, "", field!(Database, client_encoding), "Start-up value on the server."),
    Setting::new("datestyle", Kind::Text, "", field!(Database, datestyle), "Start-up value on the server."),
    Setting::new("timezone", Kind::Text, "", field!(Database, timezone), "Start-up value on the server."),
    Setting::new("reserve_pool_size", COUNT, "", field!(Database, reserve_pool_size), "In place of the general one."),
    Setting::new("reserve_pool", COUNT, "", field!(Database, reserve_pool_size), "Old name of `reserve_pool_size`."),
    Setting::new("max_db_client_connections", COUNT, "", field!(Database, max_db_client_connections), "In place of the general one."),
    Setting::new("load_balance_hosts", Kind::Choice { built: &["round-robin", "disable"], not_built: &[] }, "", NoEffect("a line has one host"), "How to choose among several hosts."),
    Setting::new("auth_user", Kind::Text, "", NotBuilt(&[]), "User that looks others up in the database."),
    Setting::new("auth_query", Kind::Text, "", NotBuilt(&[]), "Query that looks a user up."),
    Setting::new("auth_dbname", Kind::Text, "", NotBuilt(&[]), "Database in which users are looked up."),
];
