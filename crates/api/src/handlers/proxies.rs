//! Logins of the hosted proxy, and the look-up of who used an exit.

use serde::Deserialize;
use store::catalogue::{Life, TABLES};
use store::{ExitRow, NewProxyAccount, ProxyAccount};
use trust::ClientId;
use trust::api::{
    AbuseAnswer, AbuseFinding, ErrorCode, ExitsRequest, Limits, MOST_EXITS, ProxyAccountAnswer,
    ProxyAccountRequest, ProxyAccountSummary, ProxyAccountsAnswer, ProxyLogin,
};

use crate::answer::Refusal;
use crate::passwords::{encode, secret, sha256};
use crate::routes::{Answer, Context, done, ok};

/// The longest name of a login, bytes.
const NAME_MAX: usize = 32;
/// The longest default selection, bytes.
const SELECTION_MAX: usize = 200;
/// A look-up forgives this difference of clocks, ms.
const TOLERANCE_MS: u64 = 5_000;

pub(crate) async fn create(context: Context) -> Answer {
    let asked: ProxyAccountRequest = context.json()?;
    let letters = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if !(1..=NAME_MAX).contains(&asked.name.len()) || !asked.name.bytes().all(letters) {
        return Err(Refusal::bad("the name has to be 1 to 32 of a-z, 0-9, '_'"));
    }
    if asked.selection.len() > SELECTION_MAX || !asked.selection.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Refusal::bad("'selection' is longer than 200 bytes, or not plain text"));
    }
    let secret = secret().map_err(|error| Refusal::new(ErrorCode::Internal, error.to_string()))?;
    let new = NewProxyAccount {
        name: asked.name.clone(),
        account: context.account()?.account,
        secret_sha256: sha256(secret.as_bytes()),
        most_streams: asked.limits.streams,
        streams_per_second: asked.limits.streams_per_second,
        bytes_per_second: asked.limits.bytes_per_second,
        most_contracts: asked.limits.contracts,
        selection: asked.selection,
    };
    if !context.app.store.create_proxy_account(new).await? {
        return Err(Refusal::new(ErrorCode::Conflict, "the name is taken, or the account has 1,000 logins"));
    }
    ok(&ProxyAccountAnswer { name: asked.name, secret })
}

pub(crate) async fn list(context: Context) -> Answer {
    let logins = context.app.store.proxy_accounts(context.account()?.account).await?;
    let proxy_accounts = logins.into_iter().map(|login| ProxyAccountSummary {
        limits: limits(&login),
        name: login.made.name,
        selection: login.made.selection,
        disabled_at_ms: login.disabled_at_ms,
    });
    ok(&ProxyAccountsAnswer { proxy_accounts: proxy_accounts.collect() })
}

pub(crate) async fn disable(context: Context) -> Answer {
    let (name, account) = (context.param("name").to_owned(), context.account()?.account);
    if !context.app.store.disable_proxy_account(name, account).await? {
        return Err(Refusal::new(ErrorCode::NotFound, "no login of yours has this name"));
    }
    done()
}

pub(crate) async fn login(context: Context) -> Answer {
    let Some(login) = context.app.store.proxy_account(context.param("name").to_owned()).await? else {
        return Err(Refusal::new(ErrorCode::NotFound, "no such login"));
    };
    ok(&ProxyLogin {
        limits: limits(&login),
        name: login.made.name,
        account: login.made.account.0,
        secret_sha256: encode(&login.made.secret_sha256),
        selection: login.made.selection,
        disabled: login.disabled_at_ms.is_some() || login.account_disabled,
    })
}

pub(crate) async fn exits(context: Context) -> Answer {
    let asked: ExitsRequest = context.json()?;
    if asked.exits.len() > MOST_EXITS {
        return Err(Refusal::bad(format!("at most {MOST_EXITS} exits in one report")));
    }
    let rows = asked.exits.into_iter().map(|exit| ExitRow {
        exit: exit.exit,
        proxy_account: exit.proxy_account,
        provider: ClientId(exit.provider),
        port: exit.port,
        opened_at_ms: exit.opened_at_ms,
        // A clock that was set back in between.
        closed_at_ms: exit.closed_at_ms.max(exit.opened_at_ms),
    });
    context.app.store.record_exits(rows.collect()).await?;
    done()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    provider: ClientId,
    time_ms: u64,
    port: Option<u16>,
}

pub(crate) async fn abuse(context: Context) -> Answer {
    let wanted: Wanted = context.query()?;
    let found =
        context.app.store.find_exits(wanted.provider, wanted.time_ms, TOLERANCE_MS, wanted.port).await?;
    let findings = found.into_iter().map(|found| AbuseFinding {
        account: found.account.0,
        account_name: found.account_name,
        proxy_account: found.proxy_account,
        opened_at_ms: found.opened_at_ms,
        closed_at_ms: found.closed_at_ms,
    });
    let keep_ms =
        TABLES.iter().find(|table| table.name == "exit_record").map_or(0, |table| match table.life {
            Life::Sweep { keep_s, .. } => keep_s * 1_000,
            _ => 0,
        });
    ok(&AbuseAnswer { findings: findings.collect(), kept_since_ms: context.now_ms.saturating_sub(keep_ms) })
}

fn limits(login: &ProxyAccount) -> Limits {
    Limits {
        streams: login.made.most_streams,
        streams_per_second: login.made.streams_per_second,
        bytes_per_second: login.made.bytes_per_second,
        contracts: login.made.most_contracts,
    }
}
