//! What a role keeps of the network's keys while it runs: the key ring, the revocations and who is refused, as one shared reader
//! of the change log hears them ([`Reader`]); and its TLS certificate, as the files say ([`CertificateKeeper`]). Beside it, what
//! the holder of the root key does with them ([`Custody`]).
//!
//! One reader serves a process and a network, however many sessions hang on it. It asks every few seconds, or when it is given
//! a hint; what it was last told holds for as long as nobody answers, also through a start without the database.

mod certificate;
mod custody;
mod folder;
mod known;
mod reader;
mod revoke;
mod signer;

pub use certificate::{CertificateFileError, CertificateFiles, CertificateKeeper, write_certificate};
pub use custody::{
    Custody, CustodyError, KeyLine, KeysStatus, RotateOptions, Rotated, Step, VERIFIER_SILENCE_MS,
    VerifierLine,
};
pub use known::{Documents, Known};
pub use reader::{Book, INTERVAL, LEAST_INTERVAL, Reader, Source};
pub use revoke::{PublishError, publish_revocations};
pub use signer::{Signer, TokenKeyFiles, read_key};
