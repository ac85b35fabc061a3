//! What is known of the network's keys.

use membership::lease::{Cause, Leases, Standing};
use std::sync::Arc;
use trust::{ClientId, DocumentError, KeyRing, NetworkId, RevocationList};

/// The signed documents as text; empty before there are any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Documents {
    /// The key ring.
    pub ring: Arc<str>,
    /// The revocation list.
    pub revocations: Arc<str>,
}

/// What a process knows, and goes on with for as long as it hears nothing newer. Clones share it.
#[derive(Clone, Debug)]
pub struct Known {
    /// Which network.
    pub network: NetworkId,
    /// Which keys sign tokens and contracts. Number 0: it is not known yet.
    pub ring: Arc<KeyRing>,
    /// Who is not to be let in, by the root key's word.
    pub revocations: Arc<RevocationList>,
    /// Who is not to be let in, by the api's word.
    pub leases: Arc<Leases<ClientId>>,
    /// Both documents as they were signed.
    pub documents: Documents,
    /// Numbers of the documents that the database had when it last answered: ring and revocations; 0: none.
    pub in_database: Option<(u64, u64)>,
    /// When the database last answered, ms since 1970.
    pub answered_at_ms: Option<u64>,
}

impl Known {
    /// These documents, and nobody refused.
    #[must_use]
    pub fn new(network: NetworkId, ring: KeyRing, revocations: RevocationList) -> Self {
        Self {
            network,
            ring: Arc::new(ring),
            revocations: Arc::new(revocations),
            leases: Arc::default(),
            documents: Documents::default(),
            in_database: None,
            answered_at_ms: None,
        }
    }

    /// Nothing yet: no key is known, so nobody is let in.
    ///
    /// # Errors
    /// None that an empty document has.
    pub fn nothing(network: NetworkId) -> Result<Self, DocumentError> {
        let ring = KeyRing::new(network, 0, 0, Vec::new())?;
        Ok(Self::new(network, ring, RevocationList::new(network, 0, 0, [])?))
    }

    /// Why a client with a token from that second is refused. `None`: it is not.
    #[must_use]
    pub fn refusal(&self, client: ClientId, issued_at_s: u64) -> Option<Cause> {
        if self.revocations.revokes(client, issued_at_s) {
            return Some(Cause::Revoked);
        }
        match self.leases.standing(client) {
            Standing::Valid => None,
            Standing::Refused(cause) => Some(cause),
        }
    }
}
