//! Accounts, sessions, join codes.

use std::sync::{Mutex, MutexGuard, PoisonError};

use store::{JoinCodeRow, NewAccount};
use trust::api::{
    AccountAnswer, AccountRequest, ErrorCode, JoinCodeAnswer, JoinCodeRequest, SessionAnswer, SignInRequest,
};
use trust::{AccountId, CODE_LIFE_MS, JoinCode, Role};

use crate::access::Caller;
use crate::answer::Refusal;
use crate::guesses::Neighbourhood;
use crate::passwords::{hash_password, is_password, secret, sha256};
use crate::routes::{Answer, Context, done, ok};

/// How long a session lasts, ms: a day.
const SESSION_MS: u64 = 86_400_000;
/// The longest name of an account, bytes.
const NAME_MAX: usize = 64;
const PASSWORD_BYTES: std::ops::RangeInclusive<usize> = 12..=256;

pub(crate) async fn sign_in(context: Context) -> Answer {
    let app = &context.app;
    let asked: SignInRequest = context.json()?;
    // A zero byte is no text to the database.
    if asked.account.contains('\0')
        || asked.account.len() > NAME_MAX
        || asked.password.len() > *PASSWORD_BYTES.end()
    {
        return Err(wrong());
    }
    let guesser = Neighbourhood::from(context.peer);
    let name_hash = sha256(asked.account.as_bytes());
    may_guess(&context, &guesser, &name_hash)?;
    let account = app.store.account_by_name(asked.account).await?;
    // As slow for a name that does not exist.
    let kept = account.as_ref().map(|account| account.password.clone()).unwrap_or_default();
    let password = asked.password;
    let turn = app.hashing_turn().await?;
    // Others of this address may have been wrong meanwhile.
    may_guess(&context, &guesser, &name_hash)?;
    // Wrong until it is right: whoever leaves before the answer has guessed as well.
    lock(&app.guesses).note_wrong(guesser, context.now_ms);
    lock(&app.name_guesses).note_wrong(name_hash, context.now_ms);
    let right = turn.run(move || is_password(&password, &kept)).await.unwrap_or(false);
    let account = account.filter(|_| right).ok_or_else(wrong)?;
    lock(&app.guesses).note_right(&guesser);
    lock(&app.name_guesses).note_right(&name_hash);
    if account.disabled_at_ms.is_some() {
        return Err(Refusal::new(ErrorCode::AccountDisabled, "the account was disabled"));
    }
    let bearer = secret().map_err(|error| Refusal::new(ErrorCode::Internal, error.to_string()))?;
    let expires_at_ms = context.now_ms + SESSION_MS;
    app.store.open_account_session(sha256(bearer.as_bytes()), account.account, expires_at_ms).await?;
    ok(&SessionAnswer { bearer, expires_at_ms })
}

pub(crate) async fn sign_out(context: Context) -> Answer {
    if let Caller::Account(_, bearer_sha256) = &context.caller {
        context.app.store.close_account_session(*bearer_sha256).await?;
    }
    done()
}

pub(crate) async fn show(context: Context) -> Answer {
    let account = context.account()?;
    ok(&AccountAnswer { account: account.account.0, name: account.name.clone(), operator: account.operator })
}

pub(crate) async fn create(context: Context) -> Answer {
    let asked: AccountRequest = context.json()?;
    check_name(&asked.name)?;
    if !PASSWORD_BYTES.contains(&asked.password.len()) {
        return Err(Refusal::bad("the password has to have 12 to 256 bytes"));
    }
    let password = asked.password;
    let turn = context.app.hashing_turn().await?;
    let hashed = turn.run(move || hash_password(&password)).await;
    let Some(Ok(password)) = hashed else {
        return Err(Refusal::new(ErrorCode::Internal, "the password could not be hashed"));
    };
    let account = AccountId::at(context.now_ms);
    let new = NewAccount { account, name: asked.name.clone(), password, operator: false };
    if !context.app.store.create_account(new).await? {
        return Err(Refusal::new(ErrorCode::Conflict, "the name is taken"));
    }
    ok(&AccountAnswer { account: account.0, name: asked.name, operator: false })
}

pub(crate) async fn disable(context: Context) -> Answer {
    set_disabled(&context, true).await
}

pub(crate) async fn enable(context: Context) -> Answer {
    set_disabled(&context, false).await
}

async fn set_disabled(context: &Context, is_disabled: bool) -> Answer {
    let account: AccountId = context.id("account")?;
    if is_disabled && account == context.account()?.account {
        return Err(Refusal::new(ErrorCode::Forbidden, "nobody disables the account that is signed in"));
    }
    if !context.app.store.set_account_disabled(account, is_disabled).await? {
        return Err(Refusal::new(ErrorCode::NotFound, "no such account"));
    }
    context.app.documents.changed();
    lock(&context.app.refused_bearers).clear();
    done()
}

pub(crate) async fn join_code(context: Context) -> Answer {
    let account = context.account()?;
    let asked: JoinCodeRequest = context.json()?;
    let role = Role::from_number(asked.role).ok_or_else(|| Refusal::bad("no such role"))?;
    if role == Role::Proxy && !account.operator {
        // A proxy opens streams for everybody's logins.
        return Err(Refusal::new(ErrorCode::Forbidden, "only an operator lets a proxy in"));
    }
    let code = JoinCode::generate().map_err(|error| Refusal::new(ErrorCode::Internal, error.to_string()))?;
    let expires_at_ms = context.now_ms + CODE_LIFE_MS;
    let row = JoinCodeRow { hash: code.hash(), account: account.account, role, expires_at_ms };
    context.app.store.create_join_code(row).await?;
    ok(&JoinCodeAnswer { code: code.reveal(), expires_at_ms })
}

fn may_guess(context: &Context, guesser: &Neighbourhood, name_hash: &[u8; 32]) -> Result<(), Refusal> {
    let app = &context.app;
    let wait_ms = lock(&app.guesses).wait_ms(guesser, context.now_ms);
    let name_wait_ms = lock(&app.name_guesses).wait_ms(name_hash, context.now_ms);
    match wait_ms.max(name_wait_ms) {
        Some(wait_ms) => Err(Refusal::later(ErrorCode::TooMany, "too many wrong passwords", wait_ms)),
        None => Ok(()),
    }
}

fn check_name(name: &str) -> Result<(), Refusal> {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._@-".contains(&byte);
    if (1..=NAME_MAX).contains(&name.len()) && name.bytes().all(allowed) {
        return Ok(());
    }
    Err(Refusal::bad("the name has to be 1 to 64 of a-z, 0-9, '.', '_', '@', '-'"))
}

fn wrong() -> Refusal {
    Refusal::new(ErrorCode::Unauthenticated, "no such account and password")
}

/// A lock that a panic elsewhere does not take away from everybody.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
