//! A role's TLS certificate, read again when its files change: a renewal needs no restart, and touches nothing else.

use clock::unix_ms;
use rustls::ServerConfig;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use store::ConfigError;
use store::config::read_text;
use tokio::sync::watch;
use tokio::time::sleep;
use trust::{CertificateError, CertificateRole, RoleCertificate, RootKey};

/// How often the files are looked at.
const LOOK: Duration = Duration::from_secs(5);

/// Where a certificate stands.
#[derive(Clone, Debug)]
pub struct CertificateFiles {
    /// PEM: the role's certificate, then the root's.
    pub certificate: PathBuf,
    /// PEM: its key.
    pub key: PathBuf,
}

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateFileError {
    /// A file.
    #[error(transparent)]
    File(#[from] ConfigError),
    /// What stands in it.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
}

type Build = Box<dyn Fn(&RoleCertificate) -> Result<Arc<ServerConfig>, CertificateError> + Send + Sync>;

/// Keeps the configuration that new connections get.
pub struct CertificateKeeper {
    files: CertificateFiles,
    build: Build,
    texts: (String, String),
    tls: watch::Sender<Arc<ServerConfig>>,
    certificate: watch::Sender<Arc<RoleCertificate>>,
}

impl CertificateKeeper {
    /// Reads the files once; `build` makes of them what the listener needs.
    ///
    /// # Errors
    /// They cannot be used.
    pub fn open(
        files: CertificateFiles,
        build: impl Fn(&RoleCertificate) -> Result<Arc<ServerConfig>, CertificateError> + Send + Sync + 'static,
    ) -> Result<Self, CertificateFileError> {
        let texts = read(&files)?;
        let certificate = RoleCertificate::from_pem(&texts.0, &texts.1)?;
        let tls = watch::Sender::new(build(&certificate)?);
        let certificate = watch::Sender::new(Arc::new(certificate));
        Ok(Self { files, build: Box::new(build), texts, tls, certificate })
    }

    /// What new connections get.
    #[must_use]
    pub fn tls(&self) -> watch::Receiver<Arc<ServerConfig>> {
        self.tls.subscribe()
    }

    /// What is shown to other roles that are dialled.
    #[must_use]
    pub fn certificate(&self) -> watch::Receiver<Arc<RoleCertificate>> {
        self.certificate.subscribe()
    }

    /// Looks at the files again and again; never ends. Files that cannot be used (one of the two may be written just now) change
    /// nothing, and are tried again.
    pub async fn run(mut self) {
        let mut failing = false;
        loop {
            sleep(LOOK).await;
            match self.look() {
                Ok(()) => failing = false,
                Err(error) => {
                    // The first time it may be in the middle of a change.
                    if std::mem::replace(&mut failing, true) {
                        tracing::warn!(%error, file = %self.files.certificate.display(), "a renewed certificate cannot be used; the old one stays");
                    }
                }
            }
        }
    }

    fn look(&mut self) -> Result<(), CertificateFileError> {
        let texts = read(&self.files)?;
        if texts == self.texts {
            return Ok(());
        }
        let certificate = RoleCertificate::from_pem(&texts.0, &texts.1)?;
        let tls = (self.build)(&certificate)?;
        tracing::info!(
            file = %self.files.certificate.display(),
            expires_at_ms = certificate.expires_at_ms(),
            "a renewed certificate holds for new connections"
        );
        self.texts = texts;
        self.tls.send_replace(tls);
        self.certificate.send_replace(Arc::new(certificate));
        Ok(())
    }
}

/// Issues a certificate below the root for a role that is dialled under these names, and replaces both files. When it ends.
///
/// # Errors
/// A name cannot stand in a certificate, or the disk refuses.
pub fn write_certificate(
    root: &RootKey,
    role: CertificateRole,
    names: &[String],
    certificate: &Path,
    key: &Path,
) -> Result<Option<u64>, CertificateFileError> {
    let made = root.issue(role, names, unix_ms())?;
    for (path, text) in [(certificate, made.chain_pem()), (key, made.key_pem())] {
        replace(path, &text)
            .map_err(|error| ConfigError::wrong(path, format!("cannot be written: {error}")))?;
    }
    Ok(made.expires_at_ms())
}

/// A file that is there keeps its owner; a new one belongs to whoever writes.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let owner = fs::metadata(path).ok().map(|there| (there.uid(), there.gid()));
    disk::replace(path, text.as_bytes())?;
    match owner {
        Some((user, group)) if user != fs::metadata(path)?.uid() => chown(path, Some(user), Some(group)),
        _ => Ok(()),
    }
}

impl std::fmt::Debug for CertificateKeeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CertificateKeeper").field("files", &self.files).finish_non_exhaustive()
    }
}

fn read(files: &CertificateFiles) -> Result<(String, String), ConfigError> {
    Ok((read_text(&files.certificate)?, read_text(&files.key)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renewal_is_taken_once_both_files_belong_together_and_not_before() {
        let folder = tempfile::tempdir().unwrap();
        let root = RootKey::generate().unwrap();
        let issue = || {
            let names = ["localhost".to_owned()];
            root.issue(CertificateRole::Relay, &names, unix_ms()).unwrap()
        };
        let files =
            CertificateFiles { certificate: folder.path().join("a.crt"), key: folder.path().join("a.key") };
        let (first, second) = (issue(), issue());
        fs::write(&files.certificate, first.chain_pem()).unwrap();
        fs::write(&files.key, first.key_pem()).unwrap();
        let build = |certificate: &RoleCertificate| trust::server_config(certificate, &[b"x"]);
        let mut keeper = CertificateKeeper::open(files.clone(), build).unwrap();
        let mut tls = keeper.tls();
        tls.borrow_and_update();
        keeper.look().unwrap();
        assert!(!tls.has_changed().unwrap(), "the same files are no renewal");
        // The supervisor has written one of the two.
        fs::write(&files.certificate, second.chain_pem()).unwrap();
        assert!(keeper.look().is_err());
        assert!(!tls.has_changed().unwrap());
        fs::write(&files.key, second.key_pem()).unwrap();
        keeper.look().unwrap();
        assert!(tls.has_changed().unwrap());
        fs::remove_file(&files.key).unwrap();
        assert!(keeper.look().is_err());
        assert!(CertificateKeeper::open(files, build).is_err(), "a start needs both");
    }
}
