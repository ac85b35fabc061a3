//! Who is who in a network: names, identities, certificates, tokens, contracts' signatures, join links, revocations.
//!
//! Pure rules: no socket, no file, no clock. Moments are milliseconds since 1970, handed in by whoever has a clock. The only
//! thing taken from outside is randomness for new keys and codes.
//!
//! The way down from the one secret that matters: a [`RootKey`] names the network ([`NetworkId`]) and signs its certificate,
//! the [`KeyRing`] and the [`RevocationList`]; a [`TokenKey`] of the ring signs [`ClientClaims`] and [`ContractClaims`]; a client
//! shows that it is the one meant by signing with its [`Identity`]. TLS certificates hang on the root too, but on nothing
//! else: renewing one changes no other key.

pub mod api;
mod base32;
mod certificate;
mod error;
mod identity;
mod ids;
mod join;
mod peer;
mod pools;
mod proof;
mod ring;
mod root;
mod rotation;
mod signed;
mod tls;
mod token;
mod verifier;

pub use certificate::{CertificateRole, ROLE_CERTIFICATE_DAYS, RoleCertificate};
pub use error::{CertificateError, DocumentError, KeyError, ParseError, TokenError};
pub use identity::{Identity, PublicIdentity, SECRET_LEN};
pub use ids::{
    AccountId, BlobHash, ClientId, ContractId, GrantId, KeyId, NetworkId, RelayId, RequestId, Role,
    Thumbprint,
};
pub use join::{CODE_LIFE_MS, CodeHash, JoinCode, JoinLink, MAX_LINK_LEN};
pub use peer::{MAX_PEER_CHAIN, MAX_PEER_PROOF_BYTES, PEER_EXPORTER_LABEL, PeerClaims};
pub use pools::{MOST_MANIFEST_POOLS, PoolEntry, PoolManifest};
pub use proof::{EXPORTER_LABEL, Proof, RequestProof};
pub use ring::{KeyRing, KeyState, MAX_KEYS, MAX_REVOKED, RevocationList, Revoked, RingKey};
pub use root::{RootCertificate, RootKey};
pub use rotation::{Gate, RETIRED_FOR_MS, RotationError, Witness, gate};
pub use signed::{MAX_DOCUMENT_LEN, MAX_MANIFEST_LEN, MAX_TOKEN_LEN, TokenKey};
pub use tls::{client_config, server_config};
pub use token::{ClientClaims, ContractClaims, REFUSED_FOR_MS, TOKEN_LIFE_MS};
pub use verifier::PinnedVerifier;
