use super::super::model::General;
use super::Status::{NoEffect, NotBuilt};
use super::{DURATION, DURATION_FROM_1_MS, Setting, field};

const NAMES_ARE_NOT_CACHED: &str = "names are looked up again at each server login; nothing is kept";

#[rustfmt::skip] // One line a setting.
pub(super) const SETTINGS: &[Setting<General>] = &[
    // Clients.
    Setting::new("client_patience", DURATION, "", field!(General, client_patience), "How long callers wait before they give up. `query_wait_timeout` must stay below it.").own(),
    Setting::new("query_wait_timeout", DURATION, "120", field!(General, query_wait_timeout), "Longest wait for a server; 0 = for ever.").toml("4"),
    Setting::new("client_login_timeout", DURATION, "60", field!(General, client_login_timeout), "Longest client login; 0 = no limit."),
    Setting::new("client_idle_timeout", DURATION, "0", field!(General, client_idle_timeout), "Longest silence of a client outside a transaction; 0 = no limit."),
    Setting::new("client_write_timeout", DURATION, "10", field!(General, client_write_timeout), "While others wait: longest time that a client may refuse to read its result; 0 = no limit.").own(),
    Setting::new("client_message_timeout", DURATION, "10", field!(General, client_message_timeout), "While others wait: longest time for the rest of a half-sent message; 0 = no limit.").own(),
    Setting::new("idle_transaction_timeout", DURATION, "0", field!(General, idle_transaction_timeout), "Longest silence of a client inside a transaction; 0 = no limit."),
    Setting::new("transaction_timeout", DURATION, "0", field!(General, transaction_timeout), "Longest transaction; 0 = no limit."),
    Setting::new("query_timeout", DURATION, "0", field!(General, query_timeout), "Longest query; 0 = no limit."),
    Setting::new("cancel_wait_timeout", DURATION_FROM_1_MS, "10", field!(General, cancel_wait_timeout), "Longest life of a cancel request, and of cancelling and draining an abandoned query."),
    // Servers.
    Setting::new("server_connect_timeout", DURATION_FROM_1_MS, "15", field!(General, server_connect_timeout), "Longest connect and login to a server."),
    Setting::new("server_login_retry", DURATION, "15", field!(General, server_login_retry), "How long a failing server is asked again before waiting clients hear of it."),
    Setting::new("server_lifetime", DURATION, "3600", field!(General, server_lifetime), "Age after which an unused server connection is replaced, up to a tenth earlier, so that those opened at once do not go at once; 0 = used once."),
    Setting::new("server_idle_timeout", DURATION, "600", field!(General, server_idle_timeout), "Idle time after which a server connection is closed; 0 = never."),
    Setting::new("server_check_delay", DURATION, "30", field!(General, server_check_delay), "Idle time after which a server connection is tested before use; 0 = before each use."),
    // Pools and the process.
    Setting::new("lock_pileup_grace", DURATION, "0.5", field!(General, lock_pileup_grace), "How long the first of a pool's servers has waited behind a lock before `lock_pileup` cancels something.").own(),
    Setting::new("stall_after", DURATION, "5", field!(General, stall_after), "When clients of a pool wait and nobody gets an answer for so long, the pool says why (log, metric, `SHOW STALLS`); 0 = never.").own(),
    Setting::new("drain_timeout", DURATION, "0", field!(General, drain_timeout), "Longest drain after TERM or INT; 0 = as long as clients stay.").toml("60").own().restart(),
    Setting::new("suspend_timeout", DURATION, "10", NoEffect("there is no SUSPEND"), "Longest SUSPEND."),
    Setting::new("autodb_idle_timeout", DURATION, "3600", field!(General, autodb_idle_timeout), "Time without clients and servers after which a pool of a name that the `*` line serves is forgotten; 0 = never."),
    Setting::new("pool_idle_timeout", DURATION, "0", field!(General, pool_idle_timeout), "The same for every pool; 0 = never.").toml("3600"),
    Setting::new("dns_max_ttl", DURATION, "15", NoEffect(NAMES_ARE_NOT_CACHED), "Longest time that an address is kept."),
    Setting::new("dns_nxdomain_ttl", DURATION, "15", NoEffect(NAMES_ARE_NOT_CACHED), "Longest time that a failed look-up is kept."),
    Setting::new("dns_zone_check_period", DURATION, "0", NotBuilt(&["0"]), "How often zones are checked for changes."),
];
