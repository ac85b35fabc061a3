//! Blocks of bytes.

use ledger::next_block_bytes;
use store::{Admission, Admitted, Verdict};
use trust::api::{CloseAnswer, ContractAnswer, ContractRequest, ErrorCode};
use trust::{AccountId, ContractClaims, ContractId, RequestId, Role};

use crate::answer::Refusal;
use crate::routes::{Answer, Context, ok};

/// When to come back if an account has as many open contracts as it may, ms.
const LIMIT_RETRY_MS: u64 = 60_000;

pub(crate) async fn admit(context: Context) -> Answer {
    let (app, client) = (&context.app, context.client()?);
    let asked: ContractRequest = context.json()?;
    let opener = client.client;
    let (account, most_open_of_login) = payer(&context, asked.proxy_account.as_deref()).await?;
    let previous = match asked.previous {
        Some(previous) => {
            let bytes = app.store.contract_bytes(opener, ContractId(previous)).await?;
            Some(
                bytes
                    .ok_or_else(|| Refusal::new(ErrorCode::NotFound, "'previous' is no contract of yours"))?,
            )
        }
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
    match app.store.admit(admission, context.now_ms).await? {
        Verdict::Admitted(admitted) => answer(&context, account, admitted),
        verdict => Err(refused(verdict, context.now_ms)),
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
async fn payer(context: &Context, login: Option<&str>) -> Result<(AccountId, u32), Refusal> {
    let client = context.client()?;
    match (client.role, login) {
        (Role::Proxy, Some(name)) => {
            let Some(login) = context.app.store.proxy_account(name.to_owned()).await? else {
                return Err(Refusal::new(ErrorCode::NotFound, "no such login"));
            };
            if login.disabled_at_ms.is_some() || login.account_disabled {
                return Err(Refusal::new(
                    ErrorCode::AccountDisabled,
                    "the login or its account was disabled",
                ));
            }
            Ok((login.made.account, login.made.most_contracts))
        }
        (Role::Proxy, None) => Err(Refusal::bad("a proxy names the login that pays in 'proxy_account'")),
        (_, Some(_)) => Err(Refusal::bad("only a proxy names another payer")),
        (_, None) => Ok((client.account, 0)),
    }
}

fn answer(context: &Context, payer: AccountId, admitted: Admitted) -> Answer {
    let claims = ContractClaims {
        network: context.app.store.network(),
        contract: admitted.contract,
        payer,
        opener: context.client()?.client,
        bytes: admitted.bytes,
        expires_at_s: admitted.expires_at_ms / 1_000,
        offline: false,
    };
    let signed = claims.sign(&context.app.token_key).map_err(|error| {
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
