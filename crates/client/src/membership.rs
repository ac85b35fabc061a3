//! Membership in a network: keys, registration, token and trust documents, in a folder that belongs to one process at a time.
//!
//! The keys and the id of the registration are on disk before the first request goes out. So whatever happens between the
//! question and the answer, the same registration is asked for again, and no second identity is made.

mod error;
mod fresh;
mod record;

pub use error::MembershipError;

use crate::api::{Api, ApiError, Caller};
use crate::connect::Identification;
use clock::unix_ms;
use record::{Folder, Member, Record, read};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use trust::api::{RegisterRequest, TokenAnswer, TrustAnswer};
use trust::{
    ClientId, DocumentError, Identity, JoinCode, JoinLink, KeyRing, NetworkId, Proof, RequestId,
    RevocationList, Role,
};

/// How someone wants to join.
#[derive(Debug, Clone)]
pub struct Joining {
    /// Where, and which network.
    pub link: JoinLink,
    /// As what.
    pub role: Role,
    /// The code that was given for it.
    pub code: JoinCode,
    /// A name that the owner will recognise, at most 64 bytes.
    pub label: String,
    /// Where a provider says that it is: two capital letters.
    pub country: Option<String>,
}

/// A client that is registered. Held by one process: a second one that opens the folder is told so.
#[derive(Debug)]
pub struct Membership {
    folder: Folder,
    link: JoinLink,
    role: Role,
    client: ClientId,
    identity: Arc<Identity>,
    api: Api,
    state: Mutex<State>,
}

/// What changes while it runs.
#[derive(Debug)]
struct State {
    record: Record,
    member: Member,
    key_ring: Arc<KeyRing>,
    revocations: Arc<RevocationList>,
}

/// What stands in a folder, for whoever only wants to know: it may belong to another process.
#[derive(Debug, Clone)]
pub struct Glance {
    /// The client's name.
    pub client: ClientId,
    /// Where it joined, and which network.
    pub link: JoinLink,
    /// As what.
    pub role: Role,
    /// Relays to dial, in order of preference.
    pub relays: Vec<String>,
}

impl Glance {
    /// Looks into a folder without holding it; `None` if nothing has joined from there.
    ///
    /// # Errors
    /// The record cannot be read or is damaged.
    pub fn at(path: &Path) -> Result<Option<Self>, MembershipError> {
        let Some(Record { link, role, member: Some(member), .. }) = read(path)? else { return Ok(None) };
        Ok(Some(Self { client: member.client, link, role, relays: member.relays }))
    }
}

impl Membership {
    /// Registers with the code. If an earlier try was left without an answer, it is taken up again.
    ///
    /// # Errors
    /// See [`MembershipError`]; after one that is not final the same may be tried again with the same code.
    pub async fn join(path: &Path, joining: &Joining) -> Result<Self, MembershipError> {
        let folder = Folder::create(path)?;
        let record = match folder.read()? {
            Some(record) if record.member.is_some() => {
                return Err(MembershipError::AlreadyMember {
                    folder: path.to_owned(),
                    network: record.link.network,
                });
            }
            // The keys of a try that went to the same network: that one may have been registered.
            Some(record) if record.link.network == joining.link.network && record.role == joining.role => {
                Record { link: joining.link.clone(), ..record }
            }
            _ => {
                folder.write_identity(&Identity::generate()?)?;
                Record::new(joining.link.clone(), joining.role, RequestId::random())
            }
        };
        let identity = folder.read_identity()?;
        folder.write(&record)?;
        let network = joining.link.network;
        let api = Api::new(&joining.link)?;
        let request = RegisterRequest {
            request: record.request.0,
            role: joining.role.number(),
            identity: identity.public().to_string(),
            code: joining.code.reveal(),
            proof: Proof::registration(&identity, network, record.request, joining.role).to_string(),
            label: joining.label.clone(),
            software: software(),
            country: joining.country.clone(),
        };
        let answer = api.register(&request).await?;
        let member = Member::new(ClientId(answer.client), answer.token, answer.trust);
        let record = Record { member: Some(member), ..record };
        folder.write(&record)?;
        Self::new(folder, record, identity, api)
    }

    /// The membership that stands in the folder. Asks nobody: a network that cannot be reached is no reason not to start.
    ///
    /// # Errors
    /// See [`MembershipError`].
    pub fn open(path: &Path) -> Result<Self, MembershipError> {
        let not_member = || MembershipError::NotMember(path.to_owned());
        let folder = Folder::open(path)?.ok_or_else(not_member)?;
        let record = folder.read()?.filter(|record| record.member.is_some()).ok_or_else(not_member)?;
        let identity = folder.read_identity()?;
        let api = Api::new(&record.link)?;
        Self::new(folder, record, identity, api)
    }

    fn new(folder: Folder, record: Record, identity: Identity, api: Api) -> Result<Self, MembershipError> {
        let member =
            record.member.clone().ok_or_else(|| MembershipError::NotMember(folder.path().to_owned()))?;
        let (key_ring, revocations) = documents(&member.trust, record.link.network)?;
        Ok(Self {
            link: record.link.clone(),
            role: record.role,
            client: member.client,
            identity: Arc::new(identity),
            api,
            state: Mutex::new(State {
                record,
                member,
                key_ring: Arc::new(key_ring),
                revocations: Arc::new(revocations),
            }),
            folder,
        })
    }

    /// The client's name.
    #[must_use]
    pub const fn client(&self) -> ClientId {
        self.client
    }

    /// The network.
    #[must_use]
    pub const fn network(&self) -> NetworkId {
        self.link.network
    }

    /// Where it joined.
    #[must_use]
    pub const fn link(&self) -> &JoinLink {
        &self.link
    }

    /// As what it joined.
    #[must_use]
    pub const fn role(&self) -> Role {
        self.role
    }

    /// Its keys.
    #[must_use]
    pub const fn identity(&self) -> &Arc<Identity> {
        &self.identity
    }

    /// The network's api.
    #[must_use]
    pub const fn api(&self) -> &Api {
        &self.api
    }

    /// The folder of its state.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// The present token.
    #[must_use]
    pub fn token(&self) -> String {
        self.lock().member.token.clone()
    }

    /// When the present token expires, ms since 1970.
    #[must_use]
    pub fn token_expires_at_ms(&self) -> u64 {
        self.lock().member.expires_at_ms
    }

    /// Relays to dial, in order of preference.
    #[must_use]
    pub fn relays(&self) -> Vec<String> {
        self.lock().member.relays.clone()
    }

    /// The last key ring that was seen.
    #[must_use]
    pub fn key_ring(&self) -> Arc<KeyRing> {
        Arc::clone(&self.lock().key_ring)
    }

    /// The last revocation list that was seen.
    #[must_use]
    pub fn revocations(&self) -> Arc<RevocationList> {
        Arc::clone(&self.lock().revocations)
    }

    /// The number of this start: above all that this folder has given out. Kept on disk before it is used.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn take_epoch(&self) -> Result<u64, MembershipError> {
        let mut state = self.lock();
        let epoch = unix_ms().max(state.record.epoch.saturating_add(1));
        state.record.epoch = epoch;
        self.folder.write(&state.record)?;
        Ok(epoch)
    }

    /// What a link's hello says, with the present token.
    #[must_use]
    pub fn identification(&self, epoch: u64) -> Identification {
        Identification {
            network: self.network(),
            client: self.client,
            role: self.role,
            identity: Arc::clone(&self.identity),
            token: self.token(),
            epoch,
            software: Cow::Owned(software()),
        }
    }

    /// Gets a fresh token and the present trust documents, and keeps them.
    ///
    /// # Errors
    /// The api's, or the disk's.
    pub async fn refresh(&self) -> Result<(), MembershipError> {
        let (token, epoch) = {
            let state = self.lock();
            (state.member.token.clone(), state.record.epoch)
        };
        let caller = Caller { identity: &self.identity, token: &token };
        let answer = self.api.refresh(caller, epoch).await?;
        self.keep_token(answer)?;
        let trust = self.api.trust().await?;
        self.keep_trust(trust)
    }

    fn keep_token(&self, answer: TokenAnswer) -> Result<(), MembershipError> {
        let mut state = self.lock();
        state.member.set_token(answer);
        self.save(&mut state)
    }

    /// An older document than the one at hand is refused; a newer one is kept.
    fn keep_trust(&self, trust: TrustAnswer) -> Result<(), MembershipError> {
        let (key_ring, revocations) = documents(&trust, self.network())?;
        let mut state = self.lock();
        let newer = Arc::make_mut(&mut state.key_ring).replace(key_ring)?
            | Arc::make_mut(&mut state.revocations).replace(revocations)?;
        if newer {
            state.member.trust = trust;
            self.save(&mut state)?;
        }
        Ok(())
    }

    fn save(&self, state: &mut State) -> Result<(), MembershipError> {
        state.record.member = Some(state.member.clone());
        self.folder.write(&state.record)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the api has refused this client for good: nothing but its owner can help.
#[must_use]
pub fn is_refused_for_good(error: &MembershipError) -> bool {
    matches!(error, MembershipError::Api(error) if error.is_final())
}

fn documents(trust: &TrustAnswer, network: NetworkId) -> Result<(KeyRing, RevocationList), DocumentError> {
    Ok((KeyRing::verify(&trust.key_ring, network)?, RevocationList::verify(&trust.revocations, network)?))
}

/// Name and version of this software.
fn software() -> String {
    concat!("holdfast/", env!("CARGO_PKG_VERSION")).to_owned()
}

impl From<ApiError> for MembershipError {
    fn from(error: ApiError) -> Self {
        Self::Api(error)
    }
}

#[cfg(test)]
mod tests;
