//! What people do before a network is used: the schema, the first account, a grant, a login, codes to join with.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, bail};
use client::{Api, ApiError};
use store::migrate::{Passwords, migrate as to_this_schema};
use store::{DatabaseConfig, DirectPath};
use trust::api::{GrantRequest, Limits, ProviderFigures, ProxyAccountRequest};
use trust::{ClientId, JoinLink, NetworkId, Role};
use uuid::Uuid;

use super::files::DATABASE;
use crate::clock;
use crate::postgres::{ADMIN_USER, PrivatePostgres};

const OPERATOR: &str = "operator";
const OPERATORS_PASSWORD: &str = "a-password-for-a-drill";
const LOGIN: &str = "drill";
const GRANT_BYTES: u64 = 1_000_000_000_000;
const GRANT_MS: u64 = 365 * 86_400_000;
/// The api has been started just now.
const API_LIMIT: Duration = Duration::from_secs(20);
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// Brings the private server's database to this schema.
pub(super) fn migrate(postgres: &PrivatePostgres, password: &str) -> anyhow::Result<()> {
    let path = format!(
        "host='{}' port={} user={ADMIN_USER} dbname={DATABASE}",
        postgres.socket_dir().display(),
        postgres.port()
    );
    let path: DirectPath = path.parse()?;
    let [api, relay, worker] = [(); 3].map(|()| password.to_owned());
    block_on(async { Ok(to_this_schema(&path, Some(&Passwords { api, relay, worker })).await?) })?;
    Ok(())
}

pub(super) fn first_account(url: &str, network: NetworkId) -> anyhow::Result<()> {
    block_on(async {
        let store = DatabaseConfig::new(url).open(network)?;
        api::ensure_account(&store, OPERATOR, OPERATORS_PASSWORD, true).await?;
        store.pool().close();
        Ok(())
    })
}

/// The operator, who is the only customer too.
#[derive(Debug)]
pub struct Customer {
    link: JoinLink,
    user: String,
    password: String,
}

impl Customer {
    /// Gives the operator a grant, and makes a login.
    pub(super) fn make(api: SocketAddr, network: NetworkId) -> anyhow::Result<Self> {
        let link = JoinLink { host: api.ip().to_string(), port: api.port(), network };
        let api = Api::new(&link)?;
        let made = block_on(async {
            let session = patient(|| api.sign_in(OPERATOR, OPERATORS_PASSWORD)).await?;
            let account = session.account().await?.account;
            let now_ms = ::clock::unix_ms();
            let grant = GrantRequest {
                request: Uuid::new_v4(),
                account,
                bytes: GRANT_BYTES,
                starts_at_ms: now_ms,
                expires_at_ms: now_ms + GRANT_MS,
            };
            session.add_grant(&grant).await?;
            let login = ProxyAccountRequest {
                name: LOGIN.to_owned(),
                limits: Limits::default(),
                selection: String::new(),
            };
            Ok(session.add_proxy_account(&login).await?)
        })?;
        Ok(Self { link, user: made.name, password: made.secret })
    }

    /// Where others join.
    #[must_use]
    pub const fn link(&self) -> &JoinLink {
        &self.link
    }

    /// User and password of the proxies.
    #[must_use]
    pub fn login(&self) -> (&str, &str) {
        (&self.user, &self.password)
    }

    /// A code to join with.
    ///
    /// # Errors
    /// The api's.
    pub fn join_code(&self, role: Role) -> anyhow::Result<String> {
        let api = Api::new(&self.link)?;
        block_on(async { Ok(api.sign_in(OPERATOR, OPERATORS_PASSWORD).await?.join_code(role).await?.code) })
    }

    /// How many providers the api says that there are; none if it does not know.
    ///
    /// # Errors
    /// The api's.
    pub fn providers(&self) -> anyhow::Result<Option<ProviderFigures>> {
        let api = Api::new(&self.link)?;
        block_on(async { Ok(api.status().await?.providers) })
    }

    /// Revokes the client that was joined under a label.
    ///
    /// # Errors
    /// The api's, or no client has that label.
    pub fn revoke(&self, label: &str) -> anyhow::Result<()> {
        let api = Api::new(&self.link)?;
        block_on(async {
            let session = api.sign_in(OPERATOR, OPERATORS_PASSWORD).await?;
            let clients = session.clients().await?.clients;
            let client = clients.iter().find(|client| client.label == label).context("no such client")?;
            session.revoke_client(client.client).await?;
            Ok(())
        })
    }

    /// Disables one of the operator's clients.
    ///
    /// # Errors
    /// The api's.
    pub fn disable(&self, client: ClientId) -> anyhow::Result<()> {
        let api = Api::new(&self.link)?;
        block_on(async { Ok(api.sign_in(OPERATOR, OPERATORS_PASSWORD).await?.disable_client(client).await?) })
    }

    /// Signs in once, as a person would: how long it took, or why not.
    ///
    /// # Errors
    /// The api's.
    pub fn sign_in(&self) -> anyhow::Result<Duration> {
        let api = Api::new(&self.link)?;
        let began = clock::now();
        block_on(async { Ok(api.sign_in(OPERATOR, OPERATORS_PASSWORD).await.map(|_| ())?) })?;
        Ok(began.elapsed())
    }
}

async fn patient<T, F: Future<Output = Result<T, ApiError>>>(
    mut ask: impl FnMut() -> F,
) -> anyhow::Result<T> {
    let end = clock::now() + API_LIMIT;
    loop {
        match ask().await {
            Err(error) if !error.is_final() && clock::now() < end => tokio::time::sleep(ASK_AGAIN).await,
            Err(error) => bail!("the api does not answer: {error}"),
            Ok(answer) => return Ok(answer),
        }
    }
}

fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("no event loop")?.block_on(work)
}
