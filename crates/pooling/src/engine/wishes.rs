//! What a client asks of its session at start-up: parameters by name, and in `options`.

use super::Engine;
use crate::connection::ClientId;
use crate::markers::is_parameter_name;
use crate::parameters::{MAX_FURTHER, MAX_VALUE_BYTES, Tracked};
use crate::seam::ClientAddress;
use overload::patience::postgres_time;
use pgwire::startup::{Startup, options};
use std::sync::Arc;

/// PostgreSQL takes them while a session starts and never after: a server that has started already cannot.
const ONLY_AT_START: [&str; 8] = [
    "ignore_system_indexes",
    "jit_debugging_support",
    "jit_profiling_support",
    "local_preload_libraries",
    "log_connections",
    "log_disconnections",
    "post_auth_delay",
    "session_preload_libraries",
];

/// How long the caller waits for an answer. It is for the pooler; no server hears of it.
const PATIENCE: &str = "holdfast.patience";

/// The name under which both places of `ignore_startup_parameters` know the switches.
const OPTIONS: &str = "options";

impl Engine {
    /// Names and values, those of `options` first: the others stand above them, as in PostgreSQL.
    ///
    /// # Errors
    /// Something can neither be kept for the client nor be dropped; the text is for it.
    pub(super) fn wishes(&self, startup: &Startup) -> Result<Vec<(String, String)>, String> {
        let ignored = &self.config.general.ignore_startup_parameters;
        let is_ignored = |name: &str| ignored.iter().any(|ignored| ignored.eq_ignore_ascii_case(name));
        let mut wishes = Vec::new();
        if let Some(text) = startup.parameter(OPTIONS).filter(|_| !is_ignored(OPTIONS)) {
            for (name, value) in options(text).map_err(|error| error.to_string())? {
                if !is_ignored(&name) {
                    check(&name, &value, " in options")?;
                    wishes.push((name, value));
                }
            }
        }
        for (name, value) in
            startup.parameters.iter().filter(|(name, _)| name != OPTIONS && !is_ignored(name))
        {
            check(name, value, "")?;
            wishes.push((name.clone(), value.clone()));
        }
        let mut names: Vec<String> = wishes.iter().map(|(name, _)| name.to_ascii_lowercase()).collect();
        names.sort_unstable();
        names.dedup();
        if names.len() > MAX_FURTHER {
            return Err(format!("too many startup parameters, at most {MAX_FURTHER} can be kept"));
        }
        Ok(wishes)
    }

    /// Takes what the client says of its patience out of its wishes; of several the last one holds, as in PostgreSQL.
    /// Milliseconds; zero: it waits for as long as it takes.
    ///
    /// # Errors
    /// It is no time; the text is for the client.
    pub(super) fn take_patience(wishes: &mut Vec<(String, String)>) -> Result<Option<u32>, String> {
        let mut declared = None;
        for (_, value) in wishes.extract_if(.., |(name, _)| name.eq_ignore_ascii_case(PATIENCE)) {
            let Some(patience) = postgres_time(&value) else {
                return Err(format!("invalid value for parameter \"{PATIENCE}\": \"{value}\""));
            };
            // Less than a millisecond is not none.
            let least = u32::from(!patience.is_zero());
            declared = Some(u32::try_from(patience.as_millis()).unwrap_or(u32::MAX).max(least));
        }
        Ok(declared)
    }

    /// The set of what the client wishes.
    pub(super) fn own_parameters(&mut self, id: ClientId, wishes: &[(String, String)]) -> Arc<Tracked> {
        let pairs = wishes.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        if !self.config.general.application_name_add_host {
            return self.parameters.wished(pairs);
        }
        let given = wishes.iter().rfind(|(name, _)| name.eq_ignore_ascii_case("application_name"));
        let name = given.map_or("app", |(_, value)| value.as_str());
        let name = match self.clients.find(id).map(|client| client.address) {
            Some(ClientAddress::Tcp { peer, .. }) => format!("{name} - {peer}"),
            Some(ClientAddress::Unix { pid, port, .. }) => format!("{name} - unix({pid}):{port}"),
            None => name.to_owned(),
        };
        self.parameters.wished(pairs.chain([("application_name", name.as_str())]))
    }
}

fn check(name: &str, value: &str, place: &str) -> Result<(), String> {
    if !is_parameter_name(name) || ONLY_AT_START.iter().any(|known| known.eq_ignore_ascii_case(name)) {
        Err(format!("unsupported startup parameter{place}: {name}"))
    } else if value.len() > MAX_VALUE_BYTES {
        Err(format!("startup parameter \"{name}\"{place} is longer than {MAX_VALUE_BYTES} bytes"))
    } else {
        Ok(())
    }
}
