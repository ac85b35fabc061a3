//! Why a membership cannot be had, opened or kept.

use crate::api::ApiError;
use std::io;
use std::path::PathBuf;
use trust::{CertificateError, DocumentError, KeyError, NetworkId};

/// A membership that cannot be had, opened or kept.
#[derive(Debug, thiserror::Error)]
pub enum MembershipError {
    /// The disk refuses. The owner of the machine must act.
    #[error("cannot use {path}: {source}")]
    Disk {
        /// File or folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file is not what was written. It must be restored, or the folder removed and joined anew.
    #[error("{path} is damaged: {cause}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
    /// Another process holds the folder.
    #[error("{0} is in use by another process")]
    InUse(PathBuf),
    /// The folder belongs to a client already.
    #[error("{folder} has joined network {network} already: take another folder")]
    AlreadyMember {
        /// The folder.
        folder: PathBuf,
        /// Its network.
        network: NetworkId,
    },
    /// Nothing has joined from this folder.
    #[error("{0} has not joined any network")]
    NotMember(PathBuf),
    /// No keys.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The TLS library refuses the address.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// A document of the network does not hold, or is older than one that was seen.
    #[error("a trust document of the network is not taken: {0}")]
    Document(#[from] DocumentError),
    /// The api gave no answer, or refused.
    #[error(transparent)]
    Api(ApiError),
}
