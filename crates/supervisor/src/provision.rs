//! What a new network needs before anybody can use it: bytes for its operator, a login for the proxy, and the memberships of its
//! own proxy and provider. All of it may be done again: what is there stays.

use crate::data::DataFolder;
use crate::error::UpError;
use crate::proof::page_comes;
use crate::settings::{Ports, Secrets, Settings};
use client::api::Session;
use client::{Api, ApiError, Glance, Joining, Membership};
use clock::unix_ms;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::{Instant, sleep};
use trust::api::{ErrorCode, GrantRequest, Limits, ProviderFigures, ProxyAccountRequest};
use trust::{JoinLink, Role, RootKey};
use uuid::Uuid;

/// The account that owns a network made by `up`.
pub const OPERATOR: &str = "operator";
/// The proxy's login, as curl reads it from a file: on a command line every user of the machine could read it.
pub(crate) const CURL_LOGIN: &str = "curl-login";
/// What the operator is given: a terabyte for ten years.
const GRANT_BYTES: u64 = 1_000_000_000_000;
const GRANT_MS: u64 = 10 * 365 * 86_400_000;
/// How many names for a login are tried: one is used up if its answer was lost.
const LOGINS_TRIED: u32 = 10;
/// How long the api may take to answer after its start.
const API_LIMIT: Duration = Duration::from_secs(30);
const ASK_AGAIN: Duration = Duration::from_millis(100);
/// For a look at how the api stands.
const STATUS_LIMIT: Duration = Duration::from_secs(3);

/// The network that stands in a folder, as its owner sees it.
#[derive(Debug)]
pub struct Owner {
    data: DataFolder,
    settings: Settings,
    secrets: Secrets,
    link: JoinLink,
    api: Api,
}

impl Owner {
    /// Reads what `init` has made.
    ///
    /// # Errors
    /// Nothing is there, or it is damaged.
    pub fn open(data: &DataFolder) -> Result<Self, UpError> {
        let missing = || UpError::NotUp(data.path().to_owned());
        let settings = Settings::load(data)?.ok_or_else(missing)?;
        let secrets = Secrets::load(data)?.ok_or_else(missing)?;
        let root: RootKey = crate::init::root_key(data)?.ok_or_else(missing)?;
        let link =
            JoinLink { host: settings.address.clone(), port: settings.ports.api, network: root.network() };
        // The owner is on this machine, whatever the network is called outside.
        let here = JoinLink { host: local(&settings), ..link.clone() };
        Ok(Self { data: data.clone(), api: Api::new(&here)?, settings, secrets, link })
    }

    /// The password of account [`OPERATOR`].
    #[must_use]
    pub fn password(&self) -> &str {
        &self.secrets.operator
    }

    /// Its settings.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The file with the login of the proxy.
    pub(crate) fn curl_login(&self) -> PathBuf {
        self.data.file(CURL_LOGIN)
    }

    /// Where others join.
    #[must_use]
    pub const fn link(&self) -> &JoinLink {
        &self.link
    }

    /// A code with which one client may join, within ten minutes.
    ///
    /// # Errors
    /// The api's.
    pub async fn join_code(&self, role: Role) -> Result<String, UpError> {
        Ok(self.session().await?.join_code(role).await?.code)
    }

    /// How many providers the network has; `None` if the api does not answer, or does not know yet.
    pub async fn providers(&self) -> Option<ProviderFigures> {
        match tokio::time::timeout(STATUS_LIMIT, self.api.status()).await {
            Ok(Ok(status)) => status.providers,
            Ok(Err(_)) | Err(_) => None,
        }
    }

    /// Whether the demonstration page comes through the proxy and a provider.
    pub(crate) async fn page_comes(&self) -> bool {
        let Ok(Some(text)) = self.data.read(CURL_LOGIN) else { return false };
        let login = text.split('"').nth(1).and_then(|login| login.split_once(':'));
        let Some((user, password)) = login else { return false };
        let Ports { proxy, demonstration, .. } = self.settings.ports;
        let listen = self.settings.listen;
        let proxy =
            SocketAddr::new(if listen.is_unspecified() { Ipv4Addr::LOCALHOST.into() } else { listen }, proxy);
        page_comes(proxy, user, password, demonstration).await
    }

    pub(crate) const fn data(&self) -> &DataFolder {
        &self.data
    }

    /// Whether our own proxy and provider have joined.
    #[must_use]
    pub fn has_joined(&self) -> bool {
        ["proxy", "provider"].iter().all(|name| matches!(Glance::at(&self.data.file(name)), Ok(Some(_))))
    }

    /// Gives the operator bytes and the proxy a login, and lets our own proxy and provider join.
    ///
    /// # Errors
    /// The api's, or the disk's.
    pub async fn provision(&self) -> Result<(), UpError> {
        let session = self.session_of_fresh_api().await?;
        self.grant(&session).await?;
        self.login(&session).await?;
        for (name, role) in [("proxy", Role::Proxy), ("provider", Role::Provider)] {
            self.join(&session, name, role).await?;
        }
        Ok(())
    }

    async fn session(&self) -> Result<Session<'_>, UpError> {
        Ok(self.api.sign_in(OPERATOR, &self.secrets.operator).await?)
    }

    /// The api has been started just now, and may need a moment.
    async fn session_of_fresh_api(&self) -> Result<Session<'_>, UpError> {
        let end = Instant::now() + API_LIMIT;
        loop {
            match self.session().await {
                Err(UpError::Api(error)) if !error.is_final() && Instant::now() < end => {
                    sleep(ASK_AGAIN).await;
                }
                result => return result,
            }
        }
    }

    async fn grant(&self, session: &Session<'_>) -> Result<(), UpError> {
        let account = session.account().await?.account;
        let now_ms = unix_ms();
        let grant = GrantRequest {
            // The same for all time, so that it is given once.
            request: Uuid::from_bytes(first_half(self.link.network.0)),
            account,
            bytes: GRANT_BYTES,
            starts_at_ms: now_ms,
            expires_at_ms: now_ms + GRANT_MS,
        };
        match session.add_grant(&grant).await {
            Err(ApiError::Refused(answer)) if answer.code == ErrorCode::Conflict => Ok(()),
            result => Ok(result?),
        }
    }

    async fn login(&self, session: &Session<'_>) -> Result<(), UpError> {
        if self.data.read(CURL_LOGIN)?.is_some() {
            return Ok(());
        }
        let mut last = None;
        for number in 1..=LOGINS_TRIED {
            let name = if number == 1 { "demo".to_owned() } else { format!("demo{number}") };
            let request = ProxyAccountRequest { name, limits: Limits::default(), selection: String::new() };
            match session.add_proxy_account(&request).await {
                Ok(made) => {
                    return self
                        .data
                        .write(CURL_LOGIN, &format!("proxy-user = \"{}:{}\"\n", made.name, made.secret));
                }
                Err(ApiError::Refused(answer)) if answer.code == ErrorCode::Conflict => {
                    last = Some(ApiError::Refused(answer));
                }
                Err(error) => return Err(error.into()),
            }
        }
        last.map_or(Ok(()), |error| Err(error.into()))
    }

    async fn join(&self, session: &Session<'_>, name: &str, role: Role) -> Result<(), UpError> {
        let folder = self.data.file(name);
        // It may run already.
        if Glance::at(&folder)?.is_some() {
            return Ok(());
        }
        let code = session.join_code(role).await?.code;
        let code = code.parse().map_err(|_| ApiError::Malformed("no join code".to_owned()))?;
        let link = JoinLink { host: local(&self.settings), ..self.link.clone() };
        let joining = Joining { link, role, code, label: format!("up's own {name}"), country: None };
        let joined = Membership::join(&folder, &joining).await?;
        tracing::info!(client = %joined.client(), "our own {name} has joined");
        Ok(())
    }
}

/// Where this machine reaches itself: the address that it listens on, if that is one, else loopback.
fn local(settings: &Settings) -> String {
    let listen = settings.listen;
    if listen.is_unspecified() { "127.0.0.1".to_owned() } else { listen.to_string() }
}

fn first_half(bytes: [u8; 32]) -> [u8; 16] {
    let mut half = [0; 16];
    half.copy_from_slice(&bytes[..16]);
    half
}
