//! What is kept on this disk, for a start without the database: both documents, and who is refused until when.

use membership::lease::{Cause, Leases, Refusal};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use trust::{ClientId, MAX_DOCUMENT_LEN};

const RING: &str = "key-ring.signed";
const REVOCATIONS: &str = "revocations.signed";
const REFUSED: &str = "refused.json";
/// The largest file that is read, bytes: refusals take about a hundred each, documents are bounded by their own rule.
const MOST_BYTES: u64 = 4 * MAX_DOCUMENT_LEN as u64;

/// A role's folder.
#[derive(Clone, Debug)]
pub(crate) struct Folder(PathBuf);

#[derive(Serialize, Deserialize)]
struct Refused {
    answered_at_ms: Option<u64>,
    clients: Vec<RefusedClient>,
}

#[derive(Serialize, Deserialize)]
struct RefusedClient {
    client: ClientId,
    cause: String,
    until_ms: u64,
}

impl Folder {
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        Ok(Self(path.to_owned()))
    }

    pub(crate) fn ring(&self) -> io::Result<Option<String>> {
        self.read(RING)
    }

    pub(crate) fn revocations(&self) -> io::Result<Option<String>> {
        self.read(REVOCATIONS)
    }

    /// Who is refused, and when the database last answered. What is damaged is as good as nothing: the database says it anew.
    pub(crate) fn refused(&self) -> io::Result<(Leases<ClientId>, Option<u64>)> {
        let text = self.read(REFUSED)?.unwrap_or_default();
        let Ok(refused) = serde_json::from_str::<Refused>(&text) else {
            return Ok((Leases::default(), None));
        };
        let known = refused.clients.into_iter().filter_map(|one| {
            let cause = Cause::from_label(&one.cause)?;
            Some((one.client, Refusal { cause, until_ms: one.until_ms }))
        });
        Ok((Leases::kept(known), refused.answered_at_ms))
    }

    pub(crate) fn write_ring(&self, text: &str) -> io::Result<()> {
        self.write(RING, text)
    }

    pub(crate) fn write_revocations(&self, text: &str) -> io::Result<()> {
        self.write(REVOCATIONS, text)
    }

    pub(crate) fn write_refused(
        &self,
        leases: &Leases<ClientId>,
        answered_at_ms: Option<u64>,
    ) -> io::Result<()> {
        let mut clients: Vec<_> = leases
            .refused()
            .map(|(client, Refusal { cause, until_ms })| RefusedClient {
                client,
                cause: cause.label().to_owned(),
                until_ms,
            })
            .collect();
        clients.sort_unstable_by_key(|one| one.client);
        self.write(REFUSED, &serde_json::to_string(&Refused { answered_at_ms, clients })?)
    }

    fn read(&self, name: &str) -> io::Result<Option<String>> {
        disk::read_text(&self.0.join(name), MOST_BYTES)
    }

    fn write(&self, name: &str, text: &str) -> io::Result<()> {
        disk::replace(&self.0.join(name), text.as_bytes())
    }
}
