//! Blocks of bytes, held on a grant.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// `POST /v1/contracts`. The opener is the client that asks.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContractRequest {
    /// Chosen by the client for each new block: sent again, it gets the first answer and holds nothing twice.
    pub request: Uuid,
    /// A proxy names the login that pays; an app pays by its own account and leaves it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_account: Option<String>,
    /// The opener's contract that this one follows: the new block is twice as large, up to the greatest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Uuid>,
}

/// A contract that was admitted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ContractAnswer {
    /// Its name.
    pub contract: Uuid,
    /// What the relay is shown (CONTRACT), signed.
    pub signed: String,
    /// Size of the block, bytes; ask for the next when half of it is used.
    pub bytes: u64,
    /// No new stream after this time.
    pub expires_at_ms: u64,
}

/// `POST /v1/contracts/{contract}/close`: again is the same.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct CloseAnswer {
    /// When what is left of the block is free again, at the latest.
    pub settled_by_ms: u64,
}
