//! `up.toml`, which people may change, and `secrets.toml`, which nobody reads but us.

use crate::data::DataFolder;
use crate::error::UpError;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use trust::JoinCode;

const SETTINGS: &str = "up.toml";
const SECRETS: &str = "secrets.toml";
/// How many ports above the wanted one are looked at when the file is first written.
const PORTS_TRIED: u16 = 100;

/// What a network on this machine listens on, and what it is called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The address that api, relay and proxy listen on. Beyond loopback, others can join.
    pub listen: IpAddr,
    /// The name or address under which others reach this machine; it stands in join links and certificates.
    pub address: String,
    /// The ports.
    pub ports: Ports,
}

/// Ports, each chosen free when the file was first written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ports {
    /// The pooler, always on 127.0.0.1.
    pub pooler: u16,
    /// The api.
    pub api: u16,
    /// The relay.
    pub relay: u16,
    /// The proxy: SOCKS5 and HTTP CONNECT.
    pub proxy: u16,
    /// The demonstration target, always on 127.0.0.1.
    pub demonstration: u16,
}

impl Ports {
    /// Each with its name and the address that it is bound on.
    #[must_use]
    pub fn addresses(&self, listen: IpAddr) -> [(&'static str, SocketAddr); 5] {
        let local = IpAddr::V4(Ipv4Addr::LOCALHOST);
        [
            ("pooler", (local, self.pooler).into()),
            ("api", (listen, self.api).into()),
            ("relay", (listen, self.relay).into()),
            ("proxy", (listen, self.proxy).into()),
            ("demonstration", (local, self.demonstration).into()),
        ]
    }

    /// Free ones: the usual ones or above them, or all from `first` on.
    fn choose(listen: IpAddr, first: Option<u16>) -> Self {
        let local = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let mut next = first;
        let mut choose = |listen, usual| {
            let port = free_port(listen, next.unwrap_or(usual));
            next = next.map(|_| port.saturating_add(1));
            port
        };
        Self {
            pooler: choose(local, 6_432),
            api: choose(listen, 7_440),
            relay: choose(listen, 7_540),
            proxy: choose(listen, 7_640),
            demonstration: choose(local, 7_740),
        }
    }
}

impl Settings {
    /// Names and addresses that stand in certificates.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let mut names = vec![self.address.clone()];
        for local in ["localhost", "127.0.0.1", "::1"] {
            if !names.iter().any(|name| name == local) {
                names.push(local.to_owned());
            }
        }
        names
    }

    /// `address:port`, with brackets around an IPv6 address.
    #[must_use]
    pub fn public(&self, port: u16) -> String {
        match self.address.parse::<IpAddr>() {
            Ok(address) => SocketAddr::new(address, port).to_string(),
            Err(_) => format!("{}:{port}", self.address),
        }
    }

    /// Reads the file; writes it first if there is none: on loopback, or for others to join under `address`.
    pub(crate) fn load_or_write(
        data: &DataFolder,
        address: Option<&str>,
        first_port: Option<u16>,
    ) -> Result<Self, UpError> {
        if let Some(mut settings) = Self::load(data)? {
            if let Some(address) = address.filter(|address| *address != settings.address) {
                settings.expose(address);
                settings.write(data)?;
            }
            return Ok(settings);
        }
        let listen = IpAddr::V4(if address.is_some() { Ipv4Addr::UNSPECIFIED } else { Ipv4Addr::LOCALHOST });
        let address = address.unwrap_or("127.0.0.1").to_owned();
        let settings = Self { listen, address, ports: Ports::choose(listen, first_port) };
        settings.write(data)?;
        Ok(settings)
    }

    pub(crate) fn load(data: &DataFolder) -> Result<Option<Self>, UpError> {
        let text = data.read(SETTINGS)?;
        text.map(|text| toml::from_str(&text).map_err(|error| data.damaged(SETTINGS, error))).transpose()
    }

    fn expose(&mut self, address: &str) {
        address.clone_into(&mut self.address);
        if self.listen.is_loopback() {
            self.listen = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        }
    }

    fn write(&self, data: &DataFolder) -> Result<(), UpError> {
        let text = toml::to_string(self).map_err(|error| data.damaged(SETTINGS, error))?;
        data.write(
            SETTINGS,
            &format!("# Written by `holdfast init`, read at each start of `holdfast up`. Change it while nothing is up.\n{text}"),
        )
    }
}

/// Passwords that only these processes need. Debug hides them.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Secrets {
    /// PostgreSQL's user `holdfast_api`.
    pub database_api: String,
    /// PostgreSQL's user `holdfast_relay`.
    pub database_relay: String,
    /// PostgreSQL's user `holdfast_worker`.
    pub database_worker: String,
    /// PostgreSQL's user `holdfast`, for the psql line.
    pub database_user: String,
    /// The account `operator` of the network.
    pub operator: String,
}

impl Secrets {
    pub(crate) fn load_or_write(data: &DataFolder) -> Result<Self, UpError> {
        if let Some(secrets) = Self::load(data)? {
            return Ok(secrets);
        }
        let word = || JoinCode::generate().map(|code| code.reveal());
        let secrets = Self {
            database_api: word()?,
            database_relay: word()?,
            database_worker: word()?,
            database_user: word()?,
            operator: word()?,
        };
        let text = toml::to_string(&secrets).map_err(|error| data.damaged(SECRETS, error))?;
        data.write(SECRETS, &text)?;
        Ok(secrets)
    }

    pub(crate) fn load(data: &DataFolder) -> Result<Option<Self>, UpError> {
        let text = data.read(SECRETS)?;
        // The text of the error would show the line.
        text.map(|text| toml::from_str(&text).map_err(|_| data.damaged(SECRETS, "not what was written")))
            .transpose()
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secrets(…)")
    }
}

/// The first port from `wanted` on that can be bound; `wanted` if none can, which the pre-flight then tells.
fn free_port(listen: IpAddr, wanted: u16) -> u16 {
    (wanted..wanted.saturating_add(PORTS_TRIED))
        .find(|&port| TcpListener::bind((listen, port)).is_ok())
        .unwrap_or(wanted)
}

#[cfg(test)]
mod tests;
