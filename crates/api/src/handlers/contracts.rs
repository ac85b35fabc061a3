//! Blocks of bytes.

use axum::body::Body;
use axum::http::Response;
use ledger::next_block_bytes;
use store::{Admission, Admitted, StoreError, Verdict};
use trust::api::{CloseAnswer, ContractAnswer, ContractRequest, ErrorCode};
use trust::{AccountId, ContractClaims, ContractId, RequestId, Role};

use crate::answer::Refusal;
use crate::routes::{Answer, Context, ok};

/// When to come back if an account has as many open contracts as it may, ms.
const LIMIT_RETRY_MS: u64 = 60_000;

pub(crate) async fn admit(context: Context) -> Answer {
    let asked: ContractRequest = context.json()?;
    if context.app.offline.is_on() {
        return without_database(&context, &asked).await;
    }
    match by_database(&context, asked.clone()).await {
        Err(Unadmitted::Store(error)) if error.is_silence() && context.app.offline.is_on() => {
            without_database(&context, &asked).await
        }
        Err(Unadmitted::Store(error)) => Err(error.into()),
        Err(Unadmitted::Refused(refusal)) => Err(refusal),
        Ok(answer) => Ok(answer),
    }
}

/// Why the database has not admitted a contract.
enum Unadmitted {
    Refused(Refusal),
    Store(StoreError),
}

impl From<Refusal> for Unadmitted {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<StoreError> for Unadmitted {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// At most one block in an outage, for whoever is known.
async fn without_database(context: &Context, asked: &ContractRequest) -> Answer {
    let client = context.client()?;
    let login = asked.proxy_account.as_deref();
    check_login(client.role, login)?;
    let request = RequestId(asked.request);
    let given = context.app.offline.give(client.client, login, request, context.now_ms).await?;
    let admitted =
        Admitted { contract: given.contract, bytes: given.bytes, expires_at_ms: given.expires_at_ms };
    answer(context, given.account, admitted, true)
}

async fn by_database(context: &Context, asked: ContractRequest) -> Result<Response<Body>, Unadmitted> {
    let (app, client) = (&context.app, context.client()?);
    let opener = client.client;
    let login = asked.proxy_account.clone();
    let (account, most_open_of_login) = payer(context, login.as_deref()).await?;
    let previous = match asked.previous {
        // One that is not known yet, because it was given without the database, says nothing of the size.
        Some(previous) => app.store.contract_bytes(opener, ContractId(previous)).await?,
        None => None,
    };
    let admission = Admission {
        contract: ContractId::at(context.now_ms),
        account,
        proxy_account: asked.proxy_account,
        most_open_of_login,
        opener,
        request: RequestId(asked.request),
        wanted_bytes: next_block_bytes(previous),
    };
    let verdict = app.store.admit(admission, context.now_ms).await?;
    app.offline.answered();
    match verdict {
        Verdict::Admitted(admitted) => {
            app.offline.admitted(opener, login.as_deref(), account);
            Ok(answer(context, account, admitted, false)?)
        }
        // What is held comes back.
        verdict @ (Verdict::LimitContracts | Verdict::GrantSpent { free_again_at_ms: Some(_) }) => {
            Err(refused(verdict, context.now_ms).into())
        }
        verdict => {
            app.offline.refused(opener, login.as_deref());
            Err(refused(verdict, context.now_ms).into())
        }
    }
}

pub(crate) async fn close(context: Context) -> Answer {
    let opener = context.client()?.client;
    let contract: ContractId = context.id("contract")?;
    match context.app.store.close_contract(opener, contract, context.now_ms).await? {
        Some(settled_by_ms) => ok(&CloseAnswer { settled_by_ms }),
        None => Err(Refusal::new(ErrorCode::NotFound, "no contract of yours has this name")),
    }
}

/// Who pays, and how many open contracts the login may have.
async fn payer(context: &Context, login: Option<&str>) -> Result<(AccountId, u32), Unadmitted> {
    let client = context.client()?;
    check_login(client.role, login)?;
    match login {
        Some(name) => {
            let Some(login) = context.app.store.proxy_account(name.to_owned()).await? else {
                return Err(Refusal::new(ErrorCode::NotFound, "no such login").into());
            };
            if login.disabled_at_ms.is_some() || login.account_disabled {
                context.app.offline.refused(client.client, Some(name));
                let cause = "the login or its account was disabled";
                return Err(Refusal::new(ErrorCode::AccountDisabled, cause).into());
            }
            Ok((login.made.account, login.made.most_contracts))
        }
        None => Ok((client.account, 0)),
    }
}

/// A proxy pays for others, and nobody else does.
fn check_login(role: Role, login: Option<&str>) -> Result<(), Refusal> {
    match (role, login) {
        (Role::Proxy, None) => Err(Refusal::bad("a proxy names the login that pays in 'proxy_account'")),
        (Role::Provider | Role::App, Some(_)) => Err(Refusal::bad("only a proxy names another payer")),
        _ => Ok(()),
    }
}

fn answer(context: &Context, payer: AccountId, admitted: Admitted, offline: bool) -> Answer {
    let claims = ContractClaims {
        network: context.app.store.network(),
        contract: admitted.contract,
        payer,
        opener: context.client()?.client,
        bytes: admitted.bytes,
        expires_at_s: admitted.expires_at_ms / 1_000,
        offline,
    };
    let signed = claims.sign(&*context.app.token_key()?).map_err(|error| {
        Refusal::new(ErrorCode::Internal, format!("a contract could not be signed: {}", error.label()))
    })?;
    ok(&ContractAnswer {
        contract: admitted.contract.0,
        signed,
        bytes: admitted.bytes,
        expires_at_ms: claims.expires_at_s * 1_000,
    })
}

fn refused(verdict: Verdict, now_ms: u64) -> Refusal {
    match verdict {
        Verdict::AccountDisabled | Verdict::Admitted(_) => {
            Refusal::new(ErrorCode::AccountDisabled, "the account was disabled")
        }
        Verdict::LimitContracts => Refusal::later(
            ErrorCode::LimitContracts,
            "as many contracts are open as may be: close some",
            LIMIT_RETRY_MS,
        ),
        Verdict::NoGrant => Refusal::new(ErrorCode::NoGrant, "the account has no grant"),
        Verdict::GrantExpired => {
            Refusal::new(ErrorCode::GrantExpired, "no grant of the account is valid now")
        }
        Verdict::GrantOverdrawn => Refusal::new(
            ErrorCode::GrantSpent,
            "the account has used more than its grants gave: it needs another",
        ),
        Verdict::GrantSpent { free_again_at_ms: None } => {
            Refusal::new(ErrorCode::GrantSpent, "the account's grants are used up")
        }
        Verdict::GrantSpent { free_again_at_ms: Some(at_ms) } => Refusal::later(
            ErrorCode::GrantSpent,
            "what is left of the account's grants is held by open contracts",
            at_ms.saturating_sub(now_ms).clamp(1, LIMIT_RETRY_MS),
        ),
    }
}
