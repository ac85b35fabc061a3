//! Reading keys, certificates and authorities (PEM).

use aws_lc_rs::digest::{Context, SHA256};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use settings::source::{Disk, Sources};
use std::path::Path;

/// What one side's files hold.
pub(super) struct Files {
    pub identity: Option<Identity>,
    pub authorities: Vec<CertificateDer<'static>>,
    /// Of all that was read, to tell later whether anything has changed.
    pub digest: [u8; 32],
}

/// A certificate with its chain, and its key.
pub(super) struct Identity {
    pub chain: Vec<CertificateDer<'static>>,
    pub key: PrivateKeyDer<'static>,
}

/// Which of the files is at fault, and why. Holds nothing of what is in them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileError {
    pub which: Which,
    pub reason: String,
}

/// One of a side's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    Key,
    Certificate,
    Authorities,
}

impl Files {
    pub(super) fn read(tls: &settings::pooler::Tls) -> Result<Self, FileError> {
        let mut hash = Context::new(&SHA256);
        let identity = match (&tls.cert_file, &tls.key_file) {
            (Some(certificate), Some(key)) => {
                let chain = certificates(certificate, Which::Certificate, &mut hash)?;
                Some(Identity { chain, key: private_key(key, &mut hash)? })
            }
            _ => None,
        };
        let authorities = match &tls.ca_file {
            Some(path) => certificates(path, Which::Authorities, &mut hash)?,
            None => Vec::new(),
        };
        let mut digest = [0; 32];
        digest.copy_from_slice(hash.finish().as_ref());
        Ok(Self { identity, authorities, digest })
    }
}

/// The authorities as rustls wants them.
pub(super) fn roots(authorities: &[CertificateDer<'static>]) -> Result<RootCertStore, FileError> {
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots.add(authority.clone()).map_err(|error| FileError {
            which: Which::Authorities,
            reason: format!("holds a certificate that cannot be read: {error}"),
        })?;
    }
    Ok(roots)
}

fn certificates(
    path: &Path,
    which: Which,
    hash: &mut Context,
) -> Result<Vec<CertificateDer<'static>>, FileError> {
    let bytes = read(path, which, hash)?;
    let failed = |reason: String| FileError { which, reason };
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let found = found.map_err(|error| failed(format!("is not PEM: {error}")))?;
    if found.is_empty() {
        return Err(failed("holds no certificate (PEM is expected)".to_owned()));
    }
    Ok(found)
}

fn private_key(path: &Path, hash: &mut Context) -> Result<PrivateKeyDer<'static>, FileError> {
    let bytes = read(path, Which::Key, hash)?;
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|_| FileError {
        which: Which::Key,
        reason: "holds no private key (PEM without a passphrase is expected)".to_owned(),
    })
}

fn read(path: &Path, which: Which, hash: &mut Context) -> Result<Vec<u8>, FileError> {
    let bytes =
        Disk.read(path).map_err(|error| FileError { which, reason: format!("cannot be read: {error}") })?;
    hash.update(&(bytes.len() as u64).to_be_bytes());
    hash.update(&bytes);
    Ok(bytes)
}
