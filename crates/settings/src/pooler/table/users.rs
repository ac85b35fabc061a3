use super::super::model::UserSettings;
use super::{CLIENT_DISCONNECT, COUNT, COUNT_FROM_1, DURATION, POOL_MODE, SESSION_STATE, Setting, field};

#[rustfmt::skip] // One line a setting.
pub(super) const SETTINGS: &[Setting<UserSettings>] = &[
    Setting::new("pool_size", COUNT_FROM_1, "", field!(UserSettings, pool_size), "In place of the database's and of `default_pool_size`."),
    Setting::new("max_user_connections", COUNT, "", field!(UserSettings, max_user_connections), "In place of the general one."),
    Setting::new("query_wait_timeout", DURATION, "", field!(UserSettings, query_wait_timeout), "In place of the database's and the general one."),
    Setting::new("query_timeout", DURATION, "", field!(UserSettings, query_timeout), "In place of the database's and the general one."),
    Setting::new("idle_transaction_timeout", DURATION, "", field!(UserSettings, idle_transaction_timeout), "In place of the database's and the general one."),
    Setting::new("transaction_timeout", DURATION, "", field!(UserSettings, transaction_timeout), "In place of the database's and the general one."),
    Setting::new("client_idle_timeout", DURATION, "", field!(UserSettings, client_idle_timeout), "In place of the database's and the general one."),
    Setting::new("client_disconnect", CLIENT_DISCONNECT, "", field!(UserSettings, client_disconnect), "In place of the database's and the general one.").own(),
    Setting::new("session_state", SESSION_STATE, "", field!(UserSettings, session_state), "In place of the database's and the general one.").own(),
    Setting::new("pool_mode", POOL_MODE, "", field!(UserSettings, pool_mode), "In place of the database's and the general one."),
    Setting::new("reserve_pool_size", COUNT, "", field!(UserSettings, reserve_pool_size), "In place of the database's and the general one."),
    Setting::new("max_user_client_connections", COUNT, "", field!(UserSettings, max_user_client_connections), "In place of the general one."),
];
