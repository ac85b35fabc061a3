//! An api with what a proxy asks: logins, candidates, contracts, records of exits.

use crate::fixtures::{Answer, Seen, Server};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use clock::unix_ms;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use trust::api::{
    Candidate, CandidatesAnswer, CloseAnswer, ContractAnswer, ContractRequest, Exit, ExitsRequest, Limits,
    ProxyLogin, RegisterAnswer, RegisterRequest, TokenAnswer, TrustAnswer, path,
};
use trust::{
    AccountId, ClientClaims, ClientId, ContractClaims, ContractId, KeyRing, KeyState, PublicIdentity,
    RevocationList, RingKey, Role, RootKey, TokenKey,
};

pub(crate) const SECRET: &str = "correct-horse";

/// What the api knows, and what it was told.
#[derive(Default)]
pub(crate) struct Book {
    pub(crate) candidates: Vec<Candidate>,
    pub(crate) block_bytes: u64,
    /// Nothing but an error comes.
    pub(crate) gone: bool,
    pub(crate) contracts: Vec<ContractRequest>,
    pub(crate) closed: usize,
    pub(crate) exits: Vec<Exit>,
    members: HashMap<PublicIdentity, (ClientId, Role)>,
    proxy: Option<ClientId>,
}

pub(crate) type Shared = Arc<Mutex<Book>>;

/// Starts it, for the network of a root and a token key.
pub(crate) async fn start(root: &RootKey, key: &TokenKey, relay: String, book: Shared) -> Server {
    let (signer, key) = (RootKey::from_seed(root.seed()).unwrap(), TokenKey::from_seed(key.seed()).unwrap());
    let answers = move |seen: &Seen| answer(seen, &signer, &key, &relay, &mut book.lock().unwrap());
    Server::start_under(RootKey::from_seed(root.seed()).unwrap(), answers).await
}

fn answer(seen: &Seen, root: &RootKey, key: &TokenKey, relay: &str, book: &mut Book) -> Answer {
    let asked = seen.path.split('?').next().unwrap();
    if book.gone {
        return Answer { status: 503, body: String::new() };
    }
    match asked {
        path::CLIENTS => {
            let request: RegisterRequest = serde_json::from_slice(&seen.body).unwrap();
            let identity: PublicIdentity = request.identity.parse().unwrap();
            let role = if request.role == Role::Proxy.number() { Role::Proxy } else { Role::Provider };
            let (client, _) = *book.members.entry(identity).or_insert_with(|| (ClientId::random(), role));
            if role == Role::Proxy {
                book.proxy = Some(client);
            }
            let token = token(root, key, client, role, &identity, relay);
            json(&RegisterAnswer { client: client.0, token, trust: trust(root, key) })
        }
        path::TRUST => json(&trust(root, key)),
        path::CANDIDATES => {
            let candidates = book.candidates.clone();
            let connected = candidates.len() as u64;
            json(&CandidatesAnswer {
                candidates,
                now_ms: unix_ms(),
                connected,
                registered: connected,
                ..CandidatesAnswer::default()
            })
        }
        path::CONTRACTS => {
            let request: ContractRequest = serde_json::from_slice(&seen.body).unwrap();
            let contract = ContractId::random();
            let claims = ContractClaims {
                network: root.network(),
                contract,
                payer: AccountId(uuid::Uuid::from_u128(1)),
                opener: book.proxy.unwrap(),
                bytes: book.block_bytes,
                expires_at_s: unix_ms() / 1_000 + 3_600,
                offline: false,
            };
            book.contracts.push(request);
            let (signed, bytes) = (claims.sign(key).unwrap(), book.block_bytes);
            json(&ContractAnswer {
                contract: contract.0,
                signed,
                bytes,
                expires_at_ms: unix_ms() + 3_600_000,
            })
        }
        path::EXITS => {
            let report: ExitsRequest = serde_json::from_slice(&seen.body).unwrap();
            book.exits.extend(report.exits);
            Answer::json("{}")
        }
        asked if asked.ends_with("/close") => {
            book.closed += 1;
            json(&CloseAnswer { settled_by_ms: unix_ms() })
        }
        "/v1/proxy-logins/acme" => {
            let hash = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, SECRET.as_bytes());
            json(&ProxyLogin {
                name: "acme".into(),
                account: uuid::Uuid::from_u128(1),
                secret_sha256: URL_SAFE_NO_PAD.encode(hash),
                limits: Limits::default(),
                selection: String::new(),
                disabled: false,
            })
        }
        _ => Answer { status: 503, body: String::new() },
    }
}

fn json(value: &impl serde::Serialize) -> Answer {
    Answer::json(&serde_json::to_string(value).unwrap())
}

fn trust(root: &RootKey, key: &TokenKey) -> TrustAnswer {
    let ring = vec![RingKey::new(*key.public_key(), KeyState::Signing)];
    TrustAnswer {
        key_ring: KeyRing::new(root.network(), 1, 0, ring).unwrap().sign(root).unwrap(),
        revocations: RevocationList::new(root.network(), 1, 0, []).unwrap().sign(root).unwrap(),
    }
}

fn token(
    root: &RootKey,
    key: &TokenKey,
    client: ClientId,
    role: Role,
    identity: &PublicIdentity,
    relay: &str,
) -> TokenAnswer {
    let now_s = unix_ms() / 1_000;
    let claims = ClientClaims {
        network: root.network(),
        client,
        role,
        thumbprint: identity.thumbprint(),
        epoch: 0,
        issued_at_s: now_s,
        expires_at_s: now_s + 86_400,
    };
    TokenAnswer {
        token: claims.sign(key).unwrap(),
        expires_at_ms: (now_s + 86_400) * 1_000,
        refresh_after_ms: (now_s + 43_200) * 1_000,
        relays: vec![relay.to_owned()],
        now_ms: unix_ms(),
    }
}
