//! What stands on disk: the keys in one file, the rest in another, each replaced whole.

use super::MembershipError;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use trust::api::{TokenAnswer, TrustAnswer};
use trust::{ClientId, Identity, JoinLink, RequestId, Role};

const IDENTITY: &str = "identity";
const RECORD: &str = "membership.json";
const LOCK: &str = "lock";
/// The largest record that is read: the two trust documents, and room.
const MAX_RECORD_LEN: u64 = 2 * trust::MAX_DOCUMENT_LEN as u64 + 1_024 * 1_024;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Record {
    pub(super) link: JoinLink,
    pub(super) role: Role,
    pub(super) request: RequestId,
    /// The greatest epoch that was used.
    pub(super) epoch: u64,
    /// Absent until the registration has been answered.
    pub(super) member: Option<Member>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Member {
    pub(super) client: ClientId,
    pub(super) token: String,
    pub(super) expires_at_ms: u64,
    pub(super) refresh_after_ms: u64,
    pub(super) relays: Vec<String>,
    pub(super) trust: TrustAnswer,
}

impl Record {
    pub(super) const fn new(link: JoinLink, role: Role, request: RequestId) -> Self {
        Self { link, role, request, epoch: 0, member: None }
    }
}

impl Member {
    pub(super) fn new(client: ClientId, token: TokenAnswer, trust: TrustAnswer) -> Self {
        let mut member = Self {
            client,
            token: String::new(),
            expires_at_ms: 0,
            refresh_after_ms: 0,
            relays: Vec::new(),
            trust,
        };
        member.set_token(token);
        member
    }

    pub(super) fn set_token(&mut self, answer: TokenAnswer) {
        self.token = answer.token;
        self.expires_at_ms = answer.expires_at_ms;
        self.refresh_after_ms = answer.refresh_after_ms;
        self.relays = answer.relays;
    }
}

/// The folder, held against other processes as long as this lives.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    _lock: File,
}

impl Folder {
    pub(super) fn create(path: &Path) -> Result<Self, MembershipError> {
        let made = disk::private_folder(path);
        made.map_err(|source| MembershipError::Disk { path: path.to_owned(), source })?;
        Self::hold(path)
    }

    /// `None` if there is no such folder.
    pub(super) fn open(path: &Path) -> Result<Option<Self>, MembershipError> {
        if path.is_dir() { Self::hold(path).map(Some) } else { Ok(None) }
    }

    fn hold(path: &Path) -> Result<Self, MembershipError> {
        let file = path.join(LOCK);
        let disk = |source| MembershipError::Disk { path: file.clone(), source };
        let lock = OpenOptions::new().create(true).append(true).mode(0o600).open(&file).map_err(disk)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(MembershipError::InUse(path.to_owned())),
            Err(TryLockError::Error(source)) => Err(disk(source)),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn read(&self) -> Result<Option<Record>, MembershipError> {
        read(&self.path)
    }

    pub(super) fn write(&self, record: &Record) -> Result<(), MembershipError> {
        let path = self.path.join(RECORD);
        let text = serde_json::to_vec_pretty(record)
            .map_err(|error| MembershipError::Damaged { path, cause: error.to_string() })?;
        self.replace(RECORD, &text)
    }

    pub(super) fn read_identity(&self) -> Result<Identity, MembershipError> {
        let path = self.path.join(IDENTITY);
        let secret =
            fs::read(&path).map_err(|source| MembershipError::Disk { path: path.clone(), source })?;
        Identity::from_secret(&secret)
            .map_err(|error| MembershipError::Damaged { path, cause: error.to_string() })
    }

    pub(super) fn write_identity(&self, identity: &Identity) -> Result<(), MembershipError> {
        self.replace(IDENTITY, identity.secret())
    }

    fn replace(&self, name: &str, content: &[u8]) -> Result<(), MembershipError> {
        let path = self.path.join(name);
        disk::replace(&path, content).map_err(|source| MembershipError::Disk { path, source })
    }
}

/// The record in a folder, held or not: it is replaced whole.
pub(super) fn read(folder: &Path) -> Result<Option<Record>, MembershipError> {
    let path = folder.join(RECORD);
    let Some(text) = disk::read(&path, MAX_RECORD_LEN).map_err(|source| {
        if source.kind() == io::ErrorKind::FileTooLarge {
            return MembershipError::Damaged { path: path.clone(), cause: "it is too long".to_owned() };
        }
        MembershipError::Disk { path: path.clone(), source }
    })?
    else {
        return Ok(None);
    };
    serde_json::from_slice(&text)
        .map(Some)
        .map_err(|error| MembershipError::Damaged { path, cause: error.to_string() })
}
