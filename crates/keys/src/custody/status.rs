//! How the keys stand.

use super::{Custody, CustodyError};
use serde::Serialize;
use store::{Verifier, VerifierKind};
use trust::{KeyState, NetworkId};

/// Everything in one page.
#[derive(Clone, Debug, Serialize)]
pub struct KeysStatus {
    /// The network.
    pub network: NetworkId,
    /// Number of the key ring.
    pub ring: u64,
    /// Its keys, in the order in which they came.
    pub keys: Vec<KeyLine>,
    /// Number of the revocation list; 0: there is none yet.
    pub revocations: u64,
    /// How many clients are on it.
    pub revoked_clients: usize,
    /// Relays and apis that live.
    pub verifiers: Vec<VerifierLine>,
}

/// A key of the ring.
#[derive(Clone, Debug, Serialize)]
pub struct KeyLine {
    /// Its name.
    pub key: String,
    /// `coming`, `signing` or `retired`.
    pub state: KeyState,
    /// Since when, seconds since 1970; 0: from the beginning.
    pub since_s: u64,
    /// From when on nothing that it signed is believed, seconds since 1970.
    pub leaves_at_s: Option<u64>,
    /// Whether its secret is on this machine.
    pub held_here: bool,
}

/// A process that checks tokens.
#[derive(Clone, Debug, Serialize)]
pub struct VerifierLine {
    /// `relay` or `api`.
    pub kind: &'static str,
    /// An address, or the name of an api's start.
    pub name: String,
    /// Number of the ring that it holds.
    pub ring: u64,
    /// Number of the revocation list that it holds.
    pub revocations: u64,
    /// An api: the key that it signs with.
    pub signs_with: Option<String>,
    /// Whether it holds the newest of both.
    pub is_current: bool,
}

impl Custody {
    /// How the keys stand, and who has seen them.
    ///
    /// # Errors
    /// See [`CustodyError`].
    pub async fn status(&self) -> Result<KeysStatus, CustodyError> {
        let ring = self.ring().await?;
        let revocations = self.revocations().await?;
        let held = self.secrets.held()?;
        let keys = ring.keys().iter().map(|key| KeyLine {
            key: key.id.to_string(),
            state: key.state,
            since_s: key.since_s,
            leaves_at_s: key.leaves_at_s(),
            held_here: held.contains(&key.id),
        });
        let (number, listed) = revocations.as_ref().map_or((0, 0), |list| (list.number(), list.len()));
        let verifiers = self.verifiers().await?;
        let verifiers = verifiers.iter().map(|one| VerifierLine {
            kind: match one.kind {
                VerifierKind::Relay(_) => "relay",
                VerifierKind::Api { .. } => "api",
            },
            name: name(one),
            ring: one.ring,
            revocations: one.revocations,
            signs_with: match &one.kind {
                VerifierKind::Relay(_) => None,
                VerifierKind::Api { signs_with, .. } => signs_with.clone(),
            },
            is_current: one.ring >= ring.number() && one.revocations >= number,
        });
        Ok(KeysStatus {
            network: self.root.network(),
            ring: ring.number(),
            keys: keys.collect(),
            revocations: number,
            revoked_clients: listed,
            verifiers: verifiers.collect(),
        })
    }
}

/// For people.
pub(super) fn name(verifier: &Verifier) -> String {
    match &verifier.kind {
        VerifierKind::Relay(address) => format!("relay {address}"),
        VerifierKind::Api { .. } => format!("api {}", verifier.name),
    }
}
