//! One token key after another.

use super::{Custody, CustodyError, LOOK, names};
use clock::unix_ms;
use serde::Serialize;
use std::time::Duration;
use store::{Verifier, VerifierKind};
use tokio::time::{Instant, sleep};
use trust::{Gate, KeyId, Witness, gate};

/// How a rotation waits.
#[derive(Clone, Copy, Debug)]
pub struct RotateOptions {
    /// How long a key settles after the last verifier that lives has seen it, ms.
    pub settle_ms: u64,
    /// How long all of it may take, beside that.
    pub limit: Duration,
}

/// What happens now; told when it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The new key is in the ring with this number.
    Published(KeyId, u64),
    /// An earlier run has published this key: it is taken up from there.
    TakenUp(KeyId),
    /// These have not seen it yet.
    Unseen(String),
    /// These apis have not its secret: it has to be brought to them.
    Secretless(String),
    /// All have seen it; it settles until then, ms since 1970.
    Settling(u64),
    /// It signs, by the ring with this number.
    Switched(u64),
    /// These apis do not sign with it yet.
    Unsigned(String),
    /// The database does not answer; it is asked again.
    Unanswered(String),
}

/// What was done.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct Rotated {
    /// The key that signs.
    pub key: String,
    /// The ring that says so.
    pub ring: u64,
}

impl Custody {
    /// Makes a key, publishes it, waits until every relay and api that lives has seen it and it has settled, and lets it sign. A
    /// rotation that was interrupted is taken up where it stands.
    ///
    /// # Errors
    /// See [`CustodyError`].
    pub async fn rotate(
        &self,
        options: RotateOptions,
        mut progress: impl FnMut(Step),
    ) -> Result<Rotated, CustodyError> {
        let limit = options.limit + Duration::from_millis(options.settle_ms);
        let end = Instant::now() + limit;
        let mut last = None;
        let mut target = None;
        loop {
            let step = match self.step(options.settle_ms, &mut target).await {
                Ok(Next::Done(rotated)) => return Ok(rotated),
                Ok(Next::Step(step)) => step,
                // Whoever rotates in the middle of an outage waits it out.
                Err(CustodyError::Store(error)) if error.retry_after_ms().is_some() => {
                    Step::Unanswered(error.to_string())
                }
                Err(error) => return Err(error),
            };
            if last.as_ref() != Some(&step) {
                progress(step.clone());
                last = Some(step.clone());
            }
            if Instant::now() >= end {
                return Err(CustodyError::TooLong { limit_s: limit.as_secs(), why: step.why() });
            }
            if !matches!(step, Step::Published(..) | Step::TakenUp(_) | Step::Switched(_)) {
                sleep(LOOK).await;
            }
        }
    }

    async fn step(&self, settle_ms: u64, target: &mut Option<KeyId>) -> Result<Next, CustodyError> {
        let ring = self.ring().await?;
        let now_s = unix_ms() / 1_000;
        let Some(coming) = ring.coming() else {
            let signing = ring.signing().map(|key| key.id);
            return match *target {
                Some(key) if signing == Some(key) => self.signing(key, ring.number()).await,
                Some(_) => Err(CustodyError::Overtaken),
                None => {
                    let Some(_lock) = self.secrets.lock()? else {
                        return Ok(Next::Step(Step::Unanswered("another process makes a key".to_owned())));
                    };
                    if self.verifiers().await?.iter().any(|one| one.ring > ring.number()) {
                        let why = "the database has an older ring than those who live: an api puts it back";
                        return Ok(Next::Step(Step::Unanswered(why.to_owned())));
                    }
                    let key = self.secrets.pending()?;
                    let next = ring.with_coming(*key.public_key(), now_s)?;
                    // If another process was faster, the next look finds its key.
                    if !self.publish(&next).await? {
                        return Ok(Next::Step(Step::Unanswered("another process signs too".to_owned())));
                    }
                    *target = Some(key.id());
                    self.secrets.publish(key.id())?;
                    Ok(Next::Step(Step::Published(key.id(), next.number())))
                }
            };
        };
        let (key, since_s) = (coming.id, coming.since_s);
        if target.replace(key) != Some(key) {
            // Whoever makes it right now does this itself.
            if let Some(_lock) = self.secrets.lock()? {
                self.secrets.publish(key)?;
            }
            return Ok(Next::Step(Step::TakenUp(key)));
        }
        let verifiers = self.verifiers().await?;
        let witnesses: Vec<_> = verifiers.iter().map(|one| witness(one, key)).collect();
        let who = |behind: &dyn Fn(&Witness) -> bool| {
            let behind = verifiers.iter().zip(&witnesses).filter(|(_, witness)| behind(witness));
            names(&behind.map(|(verifier, _)| verifier).collect::<Vec<_>>())
        };
        let number = ring.number();
        Ok(Next::Step(match gate(number, since_s * 1_000, &witnesses, settle_ms, unix_ms()) {
            Gate::Unseen(_) => Step::Unseen(who(&|witness| witness.ring < number)),
            Gate::Secretless(_) => Step::Secretless(who(&|witness| witness.can_sign == Some(false))),
            Gate::Settling(until_ms) => Step::Settling(until_ms),
            Gate::Open => {
                let next = ring.switched(now_s)?;
                if self.publish(&next).await? {
                    Step::Switched(next.number())
                } else {
                    Step::Unanswered("another process signs too".to_owned())
                }
            }
        }))
    }

    /// The ring says so; the apis follow as soon as they have read it.
    async fn signing(&self, key: KeyId, ring: u64) -> Result<Next, CustodyError> {
        let name = key.to_string();
        let verifiers = self.verifiers().await?;
        let behind: Vec<_> = verifiers
            .iter()
            .filter(|one| match &one.kind {
                VerifierKind::Relay(_) => false,
                VerifierKind::Api { signs_with, .. } => signs_with.as_ref() != Some(&name),
            })
            .collect();
        Ok(if behind.is_empty() {
            Next::Done(Rotated { key: name, ring })
        } else {
            Next::Step(Step::Unsigned(names(&behind)))
        })
    }
}

enum Next {
    Step(Step),
    Done(Rotated),
}

impl Step {
    fn why(&self) -> String {
        match self {
            Self::Unseen(who) => format!("{who} have not seen the new key"),
            Self::Secretless(who) => format!("{who} have not the secret of the new key"),
            Self::Unsigned(who) => format!("{who} do not sign with the new key"),
            Self::Settling(_) => "the new key settles".to_owned(),
            Self::Unanswered(why) => why.clone(),
            Self::Published(..) | Self::TakenUp(_) | Self::Switched(_) => "not at its end".to_owned(),
        }
    }
}

fn witness(verifier: &Verifier, key: KeyId) -> Witness {
    let can_sign = match &verifier.kind {
        VerifierKind::Relay(_) => None,
        VerifierKind::Api { holds, .. } => Some(holds.contains(&key.to_string())),
    };
    Witness { ring: verifier.ring, since_ms: verifier.ring_since_ms, can_sign }
}
