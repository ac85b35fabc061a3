//! Who may use the proxy: logins as the api last knew them.
//!
//! A login that has been seen is checked in memory, whatever becomes of the api; it is looked at again in the background.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use overload::Moment;
use selection::{Options, Username, UsernameError};
use tokio::sync::{Notify, Semaphore};
use tokio::time::timeout;
use trust::api::ProxyLogin;

use crate::control::{Control, ControlError};
use crate::limits::{Gate, Guesses};
use crate::purse::Purse;
use crate::refusal::{Reason, Refusal};
use clock::Clock;

/// Logins that are kept; beyond, no other is taken in until some are forgotten.
pub(crate) const MAX_LOGINS: usize = 100_000;

/// A login that has been used within this time is looked at again.
pub(crate) const USED_LATELY: Duration = Duration::from_secs(10 * 60);

/// How often.
pub(crate) const REFRESH_EVERY: Duration = Duration::from_secs(30);

/// Without use for so long, it is forgotten.
pub(crate) const FORGOTTEN_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// That a name is not known is believed for so long; and after a wrong password, that it has not been changed.
pub(crate) const DOUBT: Duration = Duration::from_secs(10);

/// Questions about logins at once.
const QUESTIONS: usize = 32;

/// The longest that a login waits for the api.
const LOGIN_WAIT: Duration = Duration::from_secs(5);

/// When to come back if the api did not answer.
const COME_BACK: Duration = Duration::from_secs(5);

type Hash = [u8; SHA256_OUTPUT_LEN];

/// An account with all that belongs to it here.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) name: Box<str>,
    login: Mutex<Login>,
    gate: Mutex<Gate>,
    purse: Mutex<Purse>,
    /// The purse has got an answer.
    pub(crate) answered: Notify,
}

/// What the api said last.
struct Login {
    record: ProxyLogin,
    secret: Hash,
    defaults: Arc<Options>,
    disabled: bool,
    asked_at: Moment,
    used_at: Moment,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").field("disabled", &self.disabled).finish_non_exhaustive()
    }
}

impl Account {
    fn new(login: &ProxyLogin, targets_per_minute: u32, now: Moment) -> Result<Self, ControlError> {
        let state = Login::new(login, now)?;
        Ok(Self {
            name: login.name.as_str().into(),
            login: Mutex::new(state),
            gate: Mutex::new(Gate::new(login.limits, targets_per_minute)),
            purse: Mutex::default(),
            answered: Notify::new(),
        })
    }

    pub(crate) fn gate(&self) -> MutexGuard<'_, Gate> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn purse(&self) -> MutexGuard<'_, Purse> {
        self.purse.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long ago a customer logged in, or had a stream.
    pub(crate) fn unused_for(&self, now: Moment) -> Duration {
        if self.gate().live() > 0 { Duration::ZERO } else { now.since(self.login().used_at) }
    }

    fn login(&self) -> MutexGuard<'_, Login> {
        self.login.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn renew(&self, login: &ProxyLogin, now: Moment) -> Result<(), ControlError> {
        let used_at = self.login().used_at;
        let renewed = Login { used_at, ..Login::new(login, now)? };
        *self.login() = renewed;
        self.gate().set_limits(login.limits, now);
        Ok(())
    }
}

impl Login {
    fn new(login: &ProxyLogin, now: Moment) -> Result<Self, ControlError> {
        let nonsense =
            |what: &str| ControlError::Silent(format!("the api's answer about a login has {what}"));
        let secret = URL_SAFE_NO_PAD.decode(&login.secret_sha256).ok();
        let secret =
            secret.and_then(|bytes| Hash::try_from(bytes).ok()).ok_or_else(|| nonsense("no hash"))?;
        let defaults = Options::parse(&login.selection).map_err(|error| nonsense(&error.to_string()))?;
        let disabled = login.disabled;
        let record = login.clone();
        Ok(Self { record, secret, defaults: Arc::new(defaults), disabled, asked_at: now, used_at: now })
    }
}

/// A customer that has been let in, and what the user name asks for.
pub(crate) type Admitted = (Arc<Account>, Arc<Options>);

/// All of them.
#[derive(Debug)]
pub(crate) struct Accounts<C> {
    control: Arc<C>,
    clock: Clock,
    targets_per_minute: u32,
    known: Mutex<Known>,
    guesses: Mutex<Guesses>,
    questions: Semaphore,
}

#[derive(Debug, Default)]
struct Known {
    accounts: HashMap<Box<str>, Arc<Account>>,
    /// Names that the api does not know, and when it said so.
    unknown: HashMap<Box<str>, Moment>,
}

impl<C: Control> Accounts<C> {
    pub(crate) fn new(control: Arc<C>, clock: Clock, targets_per_minute: u32) -> Self {
        Self {
            control,
            clock,
            targets_per_minute,
            known: Mutex::default(),
            guesses: Mutex::default(),
            questions: Semaphore::new(QUESTIONS),
        }
    }

    /// Lets a customer in by user name and password. `selection` is what the port says, over what the account says.
    pub(crate) async fn admit(
        &self,
        name: &str,
        password: &[u8],
        peer: IpAddr,
        selection: &str,
    ) -> Result<Admitted, Refusal> {
        if let Some(wait) = lock(&self.guesses).wait(peer, self.clock.now()) {
            let cause = "too many logins from this address have failed";
            return Err(Refusal::new(Reason::TooManyFailedLogins, cause).after(wait));
        }
        // The name alone first: what else is in it is nobody's business who has no password.
        let account_name = name.split('-').next().unwrap_or_default();
        let hash = sha256(password);
        let account = self.account(account_name, &hash).await?;
        let (accepted, disabled, defaults) = match &account {
            Some(account) => {
                let mut login = account.login();
                login.used_at = self.clock.now();
                let accepted = verify_slices_are_equal(&login.secret, &hash).is_ok();
                (accepted, login.disabled, Arc::clone(&login.defaults))
            }
            // As much work as for a name that there is.
            None => {
                let _ = verify_slices_are_equal(&[0; SHA256_OUTPUT_LEN], &hash);
                (false, false, Arc::default())
            }
        };
        let Some(account) = account.filter(|_| accepted) else {
            lock(&self.guesses).failed(peer, self.clock.now());
            return Err(Refusal::new(Reason::LoginFailed, "the user name or the password is wrong"));
        };
        if disabled {
            return Err(Refusal::new(Reason::AccountDisabled, "this account is disabled"));
        }
        let options = options(name, selection, &defaults)?;
        Ok((account, options))
    }

    /// Lets somebody in without a login, by the account that the operator has named for that.
    pub(crate) async fn admit_nameless(&self, name: &str, selection: &str) -> Result<Admitted, Refusal> {
        let account = self.fetch(name).await?.ok_or_else(|| {
            Refusal::new(Reason::LoginRequired, "the account for those without a login is not there")
        })?;
        let mut login = account.login();
        login.used_at = self.clock.now();
        let (disabled, defaults) = (login.disabled, Arc::clone(&login.defaults));
        drop(login);
        if disabled {
            return Err(Refusal::new(Reason::AccountDisabled, "this account is disabled"));
        }
        let options = options(name, selection, &defaults)?;
        Ok((account, options))
    }

    /// The account of a name; asked for if it is not known, or if its password might have been changed.
    async fn account(&self, name: &str, hash: &Hash) -> Result<Option<Arc<Account>>, Refusal> {
        let known = lock(&self.known).accounts.get(name).cloned();
        let Some(account) = known else { return self.fetch(name).await };
        let (matches, is_fresh) = {
            let login = account.login();
            let matches = verify_slices_are_equal(&login.secret, hash).is_ok();
            (matches, self.clock.now().since(login.asked_at) < DOUBT)
        };
        if !matches && !is_fresh {
            // If nobody answers, what was known stands.
            let _ = self.ask(name).await;
        }
        Ok(Some(account))
    }

    async fn fetch(&self, name: &str) -> Result<Option<Arc<Account>>, Refusal> {
        {
            let mut known = lock(&self.known);
            if let Some(account) = known.accounts.get(name) {
                return Ok(Some(Arc::clone(account)));
            }
            let now = self.clock.now();
            match known.unknown.get(name) {
                Some(asked_at) if now.since(*asked_at) < DOUBT => return Ok(None),
                Some(_) => drop(known.unknown.remove(name)),
                None => {}
            }
        }
        // What no account can be called is not asked for.
        if Username::parse(name, &Options::default()).is_err() {
            return Ok(None);
        }
        self.ask(name).await.map_err(|_| {
            let cause = "the network's api gives no answer, and this login has not been seen here";
            Refusal::new(Reason::Unavailable, cause).after(COME_BACK)
        })
    }

    /// Asks the api, and keeps what it says.
    async fn ask(&self, name: &str) -> Result<Option<Arc<Account>>, ControlError> {
        let asked = async {
            let _permit = self.questions.acquire().await;
            self.control.login(name).await
        };
        let silent = |_| ControlError::Silent("no answer in time".into());
        let login = timeout(LOGIN_WAIT, asked).await.map_err(silent)??;
        let now = self.clock.now();
        let mut known = lock(&self.known);
        let Some(login) = login else {
            if known.unknown.len() >= MAX_LOGINS {
                known.unknown.clear();
            }
            known.unknown.insert(name.into(), now);
            // It was deleted: nobody gets in by it, and what is open ends by itself.
            known.accounts.remove(name);
            return Ok(None);
        };
        known.unknown.remove(name);
        if let Some(account) = known.accounts.get(name) {
            account.renew(&login, now)?;
            return Ok(Some(Arc::clone(account)));
        }
        let account = Arc::new(Account::new(&login, self.targets_per_minute, now)?);
        if known.accounts.len() < MAX_LOGINS {
            known.accounts.insert(name.into(), Arc::clone(&account));
        }
        Ok(Some(account))
    }

    /// Looks again at the logins that have been used lately, and forgets those that have not been used for long.
    pub(crate) async fn refresh(&self) {
        let now = self.clock.now();
        let mut names = Vec::new();
        lock(&self.known).accounts.retain(|name, account| {
            let login = account.login();
            let unused = now.since(login.used_at);
            if unused < USED_LATELY && now.since(login.asked_at) >= REFRESH_EVERY {
                names.push(name.clone());
            }
            unused < FORGOTTEN_AFTER || Arc::strong_count(account) > 1
        });
        for name in names {
            if let Err(error @ (ControlError::Silent(_) | ControlError::Unable(_))) = self.ask(&name).await {
                tracing::debug!(%error, "logins stay as they were last known");
                // The others would hear the same.
                return;
            }
        }
    }

    /// Takes in logins of an earlier run, to be looked at again soon.
    pub(crate) fn restore(&self, logins: &[ProxyLogin]) {
        let now = self.clock.now();
        let mut known = lock(&self.known);
        for login in logins.iter().take(MAX_LOGINS) {
            if let Ok(account) = Account::new(login, self.targets_per_minute, now) {
                known.accounts.entry(login.name.as_str().into()).or_insert_with(|| Arc::new(account));
            }
        }
    }

    /// What the api said of each.
    pub(crate) fn records(&self) -> Vec<ProxyLogin> {
        self.all().iter().map(|account| account.login().record.clone()).collect()
    }

    /// Those that are known.
    pub(crate) fn all(&self) -> Vec<Arc<Account>> {
        lock(&self.known).accounts.values().cloned().collect()
    }
}

fn options(name: &str, selection: &str, defaults: &Arc<Options>) -> Result<Arc<Options>, Refusal> {
    let bad = |error: UsernameError| Refusal::new(Reason::BadUsername, error.to_string());
    if selection.is_empty() && !name.contains('-') {
        return Ok(Arc::clone(defaults));
    }
    let defaults = defaults.overridden_by(selection).map_err(bad)?;
    Username::parse(name, &defaults).map(|username| Arc::new(username.options)).map_err(bad)
}

fn sha256(bytes: &[u8]) -> Hash {
    let mut hash = Hash::default();
    hash.copy_from_slice(digest(&SHA256, bytes).as_ref());
    hash
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
