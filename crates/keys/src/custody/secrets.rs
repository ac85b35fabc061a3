//! The files of token keys.

use crate::signer::{TokenKeyFiles, read_key};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, chown};
use std::path::{Path, PathBuf};
use store::ConfigError;
use trust::{KeyId, TokenKey};

use super::CustodyError;

/// A key that is in no ring yet: it is written before anybody hears of it, so that it cannot be lost; and found again by whoever
/// takes up what was interrupted.
const PENDING: &str = "next.pending";
const LOCK: &str = "rotate.lock";

#[derive(Debug)]
pub(super) struct Secrets {
    pub(super) first: PathBuf,
    pub(super) folder: Option<PathBuf>,
}

impl Secrets {
    /// Names of those that are here.
    pub(super) fn held(&self) -> Result<Vec<KeyId>, CustodyError> {
        let files = TokenKeyFiles { first: self.first.clone(), folder: self.folder.clone() };
        Ok(files.read()?.iter().map(|key| key.id()).collect())
    }

    /// Held while a key is made and published: of two at once, one would lose its secret. `None`: another process holds it.
    pub(super) fn lock(&self) -> Result<Option<File>, CustodyError> {
        let folder = self.folder()?;
        let path = folder.join(LOCK);
        let open = || {
            make(folder)?;
            let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&path)?;
            give(&path, folder)?;
            Ok(file)
        };
        let file = open().map_err(|source| failed(&path, source))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(source)) => Err(failed(&path, source)),
        }
    }

    /// The key that is to come next: made and written, if there is none.
    pub(super) fn pending(&self) -> Result<TokenKey, CustodyError> {
        let folder = self.folder()?;
        let path = folder.join(PENDING);
        if path.exists() {
            return Ok(read_key(&path, TokenKey::from_seed)?);
        }
        let key = TokenKey::generate()?;
        let text = format!("{}\n", BASE64_URL_SAFE_NO_PAD.encode(key.seed()));
        write(folder, PENDING, &text).map_err(|source| failed(&path, source))?;
        Ok(key)
    }

    /// The key is published: from now on apis read it. Again is the same.
    pub(super) fn publish(&self, id: KeyId) -> Result<(), CustodyError> {
        let folder = self.folder()?;
        let path = folder.join(PENDING);
        if path.exists() && read_key(&path, TokenKey::from_seed)?.id() == id {
            let done = || {
                fs::rename(&path, folder.join(format!("{id}.key")))?;
                disk::sync_folder(&path)
            };
            done().map_err(|source| failed(&path, source))?;
        }
        Ok(())
    }

    fn folder(&self) -> Result<&Path, CustodyError> {
        self.folder.as_deref().ok_or(CustodyError::NoFolder)
    }
}

fn failed(path: &Path, error: io::Error) -> CustodyError {
    CustodyError::File(ConfigError::wrong(path, format!("cannot be written: {error}")))
}

/// For the folder's owner alone, who may be another than the one who writes.
fn write(folder: &Path, name: &str, text: &str) -> io::Result<()> {
    make(folder)?;
    let path = folder.join(name);
    disk::replace(&path, text.as_bytes())?;
    give(&path, folder)
}

fn make(folder: &Path) -> io::Result<()> {
    if folder.exists() {
        return Ok(());
    }
    disk::private_folder(folder)?;
    folder.parent().map_or(Ok(()), |above| give(folder, above))
}

/// To the owner of another file, if it is another's.
fn give(path: &Path, like: &Path) -> io::Result<()> {
    let (have, want) = (fs::metadata(path)?, fs::metadata(like)?);
    if have.uid() == want.uid() { Ok(()) } else { chown(path, Some(want.uid()), Some(want.gid())) }
}
