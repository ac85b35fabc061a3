//! The link to a relay, kept up for as long as streams are wanted.
//!
//! After every end it comes back, at the pace that the relay has set. It stays away in two cases: the relay or the api has refused
//! it for good, which is kept on disk and told to the owner; or no streams are wanted, and the last one has ended.

mod place;

pub(crate) use place::{Place, Standing};

use crate::carry::Carrier;
use crate::state::{Held, StateFolder};
use client::membership::is_refused_for_good;
use client::{Code, Identification, Link, LinkError, Membership, Opens, Pace, Phase, SealedOpen, Ways};
use clock::{Clock, unix_ms};
use link::Comeback;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Name and version of this program, as a relay hears it.
const SOFTWARE: &str = concat!("holdfast/", env!("CARGO_PKG_VERSION"));
/// Between two tries to refresh a token that the relay calls expired.
const REFRESH_TIME_MAX: Duration = Duration::from_secs(20);

/// The link to a relay that drains is kept for so long beside the new one: until all relays know of that.
const HANDOVER: Duration = Duration::from_secs(2);

/// Keeps the link.
#[derive(Debug)]
pub(crate) struct Uplink {
    pub(crate) membership: Arc<Membership>,
    pub(crate) carrier: Arc<Carrier>,
    pub(crate) state: StateFolder,
    pub(crate) clock: Clock,
    pub(crate) epoch: u64,
    pub(crate) place: Place,
    pub(crate) ways: Ways,
    /// The owner says that a refusal has been cleared up.
    pub(crate) retry: Notify,
}

/// Why a link is over, as far as it matters for what comes next.
enum Over {
    /// No streams are wanted.
    Unwanted,
    /// The relay wants its clients elsewhere; the link carries streams, new ones too, until there is another.
    Draining { spread: Duration, addresses: Vec<String>, link: Link },
    /// It ended, or never stood.
    Ended(LinkError),
}

impl Uplink {
    /// Until the task is dropped.
    pub(crate) async fn keep(&self) {
        let (opens, incoming) = Opens::channel(self.epoch);
        tokio::join!(self.keep_link(opens), self.carry(incoming), self.keep_token());
    }

    /// Each open in a task of its own; they end with this.
    async fn carry(&self, mut incoming: mpsc::Receiver<SealedOpen>) {
        let mut streams = JoinSet::new();
        loop {
            tokio::select! {
                open = incoming.recv() => match open {
                    Some(open) => {
                        let carrier = Arc::clone(&self.carrier);
                        streams.spawn(async move {
                            // What does not open has been refused by the link.
                            match open.unseal() {
                                Some(open) => carrier.carry(open).await,
                                None => carrier.ledger.refused("seal"),
                            }
                        });
                    }
                    None => return,
                },
                Some(ended) = streams.join_next() => if let Err(error) = ended && error.is_panic() {
                    tracing::error!("a stream ended by a fault of this program");
                },
            }
        }
    }

    async fn keep_link(&self, opens: Opens) {
        let mut comeback = Comeback::new();
        if let Some(pace) = self.state.pace() {
            comeback.set_pace(pace);
        }
        let mut relays = Relays::default();
        // The link to a relay that drains: it goes once the next one stands, and with its last stream.
        let mut leaving: Option<Link> = None;
        loop {
            self.released().await;
            self.wanted().await;
            let Some(relay) = relays.next(&self.membership.relays()) else {
                self.place.failed("the network has named no relay yet; the token is refreshed", unix_ms());
                self.rest(comeback.ended(None, fastrand::u64(..), self.clock.now())).await;
                // Relays are named with each token.
                self.refresh().await;
                continue;
            };
            self.place.set(Standing::Connecting { relay: relay.clone() });
            let over = match self.dial(&relay, opens.clone()).await {
                Ok(link) => {
                    let pace = Pace::from(link.welcome());
                    comeback.set_pace(pace);
                    comeback.connected(self.clock.now());
                    self.keep_pace(pace);
                    relays.welcome(&relay, &link.welcome().addresses);
                    if let Some(leaving) = leaving.take() {
                        tokio::spawn(async move {
                            sleep(HANDOVER).await;
                            drop(leaving);
                        });
                    }
                    self.stand(relay, link).await
                }
                Err(error) => Over::Ended(error),
            };
            match over {
                Over::Unwanted => {}
                Over::Draining { spread, addresses, link } => {
                    // Where there is nowhere to go, it would only keep the relay from its end.
                    leaving = (!addresses.is_empty()).then_some(link);
                    relays.drain(addresses);
                    let spread_us = u64::try_from(spread.as_micros()).unwrap_or(u64::MAX);
                    sleep(Duration::from_micros(fastrand::u64(..=spread_us))).await;
                }
                Over::Ended(error) => self.ended(error, &mut comeback).await,
            }
        }
    }

    async fn dial(&self, relay: &str, opens: Opens) -> Result<Link, LinkError> {
        let meter = Arc::clone(self.carrier.gate.meter());
        Link::connect_by(relay, self.identification(), Some(opens), meter, &self.ways).await
    }

    /// What a link that is over means for the next.
    async fn ended(&self, error: LinkError, comeback: &mut Comeback) {
        self.place.failed(&error.to_string(), unix_ms());
        if error.is_final() {
            return self.hold(error.label(), &error.to_string());
        }
        if matches!(error, LinkError::Refused { code: Code::TokenExpired, .. }) {
            self.refresh().await;
        }
        let wait = comeback.ended(error.retry_after(), fastrand::u64(..), self.clock.now());
        tracing::warn!(%error, wait_ms = wait.as_millis(), "the link to the relay is down");
        self.rest(wait).await;
    }

    /// Waits, unless the owner says "now".
    async fn rest(&self, wait: Duration) {
        let next_dial_at_ms = unix_ms().saturating_add(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        self.place.set(Standing::Waiting { next_dial_at_ms });
        tokio::select! {
            () = sleep(wait) => {}
            () = self.retry.notified() => {}
        }
    }

    /// A link that stands, until there is a reason to leave it.
    async fn stand(&self, relay: String, link: Link) -> Over {
        tracing::info!(relay, "connected");
        self.place.set(Standing::Up { relay, link: link.clone(), since_ms: unix_ms() });
        let mut phase = link.phase();
        let over = loop {
            match &*phase.borrow_and_update() {
                Phase::Up => {}
                Phase::Draining { spread, addresses, .. } => {
                    let (spread, addresses) = (*spread, addresses.clone());
                    break Over::Draining { spread, addresses, link: link.clone() };
                }
                Phase::Ended(error) => break Over::Ended(error.clone()),
            }
            tokio::select! {
                changed = phase.changed() => if changed.is_err() {
                    break Over::Ended(LinkError::Closed);
                },
                () = self.unwanted() => {
                    link.close();
                    tracing::info!("disconnected: no streams are taken now, and the last one has ended");
                    break Over::Unwanted;
                }
            }
        };
        if let Over::Draining { .. } = over {
            self.place.set(Standing::Draining);
        }
        over
    }

    /// Comes back once streams are taken, or some that were taken stand.
    async fn wanted(&self) {
        let mut openness = self.carrier.gate.openness();
        if openness.borrow().closed.is_some() {
            self.place.set(Standing::Resting);
            let _ = openness.wait_for(|openness| openness.closed.is_none()).await;
        }
    }

    /// Comes back once no streams are taken and none stand.
    async fn unwanted(&self) {
        let (mut openness, mut streams) = (self.carrier.gate.openness(), self.carrier.gate.streams());
        loop {
            let closed = openness.wait_for(|openness| openness.closed.is_some()).await.is_ok();
            if !closed || streams.wait_for(|streams| *streams == 0).await.is_err() {
                return std::future::pending().await;
            }
            if openness.borrow().closed.is_some() {
                return;
            }
        }
    }

    /// Comes back once no refusal is held.
    async fn released(&self) {
        loop {
            let Some(held) = self.place.held() else { return };
            if held.code == Code::Version.label() && held.version != env!("CARGO_PKG_VERSION") {
                tracing::info!("another version runs now: the refusal of the last one is forgotten");
                return self.release();
            }
            self.place.set(Standing::Held);
            self.retry.notified().await;
            self.release();
        }
    }

    fn release(&self) {
        self.place.set_held(None);
        if let Err(error) = self.state.release() {
            tracing::error!("{error}");
        }
    }

    /// Refused for good: kept, told, and not tried again.
    fn hold(&self, code: &str, cause: &str) {
        tracing::error!(
            code,
            "the network refuses this provider for good: {cause}; it stays away until its owner acts"
        );
        let held = Held {
            code: code.to_owned(),
            cause: cause.to_owned(),
            at_ms: unix_ms(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        if let Err(error) = self.state.hold(&held) {
            tracing::error!("{error}");
        }
        self.place.set_held(Some(held));
    }

    async fn keep_token(&self) {
        loop {
            let error = self.membership.keep_fresh().await;
            // The relay has the last word on what the token at hand is worth; this one is not asked for again.
            self.hold("refresh_refused", &error.to_string());
            self.place.close();
            self.place.released().await;
        }
    }

    async fn refresh(&self) {
        match tokio::time::timeout(REFRESH_TIME_MAX, self.membership.refresh()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) if is_refused_for_good(&error) => self.hold("refresh_refused", &error.to_string()),
            Ok(Err(error)) => tracing::warn!(%error, "the token was not refreshed"),
            Err(_) => tracing::warn!("the token was not refreshed within {} s", REFRESH_TIME_MAX.as_secs()),
        }
    }

    fn keep_pace(&self, pace: Pace) {
        if self.state.pace() != Some(pace)
            && let Err(error) = self.state.keep_pace(pace)
        {
            tracing::warn!("{error}");
        }
    }

    fn identification(&self) -> Identification {
        Identification {
            network: self.membership.network(),
            client: self.membership.client(),
            role: trust::Role::Provider,
            identity: Arc::clone(self.membership.identity()),
            token: self.membership.token(),
            epoch: self.epoch,
            software: Cow::Borrowed(SOFTWARE),
        }
    }
}

/// Which relay next.
#[derive(Debug, Default)]
struct Relays {
    /// The one that stood last: it is tried first, once.
    last: Option<String>,
    /// Those that a relay has named.
    named: Vec<String>,
    attempts: usize,
}

impl Relays {
    fn next(&mut self, known: &[String]) -> Option<String> {
        let attempt = self.attempts;
        self.attempts = attempt.wrapping_add(1);
        if let Some(last) = self.last.take() {
            return Some(last);
        }
        let fresh = self.named.iter().filter(|named| !known.contains(named));
        let all: Vec<&String> = known.iter().chain(fresh).collect();
        all.get(attempt.checked_rem(all.len())?).map(|relay| (*relay).clone())
    }

    fn welcome(&mut self, relay: &str, addresses: &[String]) {
        self.last = Some(relay.to_owned());
        self.named = addresses.to_vec();
        self.attempts = 0;
    }

    /// The relay that drains is not the one to go back to.
    fn drain(&mut self, addresses: Vec<String>) {
        let drained = self.last.take();
        self.attempts = 0;
        if let Some(first) = addresses.iter().find(|address| Some(*address) != drained.as_ref()) {
            self.last = Some(first.clone());
        }
        if !addresses.is_empty() {
            self.named = addresses;
        }
    }
}

#[cfg(test)]
mod tests;
