//! Links to other relays: what is said on them, and what it means for those who are connected here.

use super::connection::{End, Part};
use super::control::broken;
use super::data::LOW_WATER_BYTES;
use super::inside::Inside;
use super::{Connection, Hub};
use crate::door::AdmittedPeer;
use crate::elsewhere::{Claim, Introduced, Linked};
use clock::unix_ms;
use link::message::{MOST_PRESENT, Presence, PresenceChange, Present, Standing};
use link::{Code, Heartbeat, Kind};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;
use trust::{ClientId, RelayId};

/// Unanswered pings after which another relay is given up.
const PING_MISSES: u8 = 2;
/// News that wait for a relay that takes none. Beyond them the link is ended: a new one begins with the whole set.
const MAX_NEWS: usize = 1 << 20;
/// Streams of one link at once.
pub(super) const MAX_PEER_STREAMS: usize = 1 << 18;

/// What is known of the relay at the other end of a link.
#[derive(Debug)]
pub(crate) struct PeerEnd {
    pub relay: RelayId,
    /// The link was dialled from here: streams that are opened from here have odd numbers, those from there even ones.
    pub dialled: bool,
    /// What it is still to be told, in order.
    news: RefCell<VecDeque<(PresenceChange, Present)>>,
    /// The greatest number of a stream that it has opened.
    pub(super) last_heard: std::cell::Cell<u32>,
}

/// A link to another relay; two are the same if they are the same connection.
#[derive(Clone, Debug)]
pub(crate) struct PeerLink(pub(super) Rc<Connection>);

impl PartialEq for PeerLink {
    fn eq(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }
}

impl PeerEnd {
    /// A number that the other relay may give to a stream now.
    pub(super) fn hears(&self, stream: u32) -> bool {
        let is_theirs = stream.is_multiple_of(2) == self.dialled;
        let is_new = is_theirs && stream > self.last_heard.get();
        if is_new {
            self.last_heard.set(stream);
        }
        is_new
    }

    fn say(&self, change: PresenceChange, present: Present) {
        self.news.borrow_mut().push_back((change, present));
    }
}

impl Connection {
    /// Keeps a link to another relay until it ends.
    pub(crate) async fn serve_peer(hub: Rc<Hub>, admitted: AdmittedPeer) {
        let AdmittedPeer { socket, tls, rest, who } = admitted;
        let Introduced { relay, epoch, dialled, .. } = who;
        let interval = Duration::from_millis(u64::from(hub.config.peer_ping_interval_ms));
        let heartbeat = Heartbeat::new(interval, PING_MISSES, fastrand::u64(..), hub.clock.now());
        let end = PeerEnd { relay, dialled, news: RefCell::default(), last_heard: std::cell::Cell::new(0) };
        let inside = Inside { last_stream: u32::from(dialled), ..Inside::new(tls, rest, heartbeat) };
        let link = Self { epoch, ..Self::with(Part::Relay(Box::new(end)), socket, inside) };
        let link = Rc::new(link);
        if hub.gain_peer(&link, who) {
            let end = match link.turn_by_turn(&hub).await {
                Ok(end) | Err(end) => end,
            };
            tracing::info!(%relay, ?end, "a link to another relay is down");
            link.leave(&hub, &end);
        } else {
            link.say(&hub, Code::Superseded);
        }
        link.farewell().await;
    }

    pub(super) fn present(&self) -> Present {
        let Claim { epoch, dial, at_ms } = self.claim();
        Present { client: self.client.0, epoch, dial, at_ms }
    }

    /// Writes news for another relay, as far as it takes them; whether there are more.
    pub(super) fn write_news(&self, inside: &mut Inside) -> Result<bool, End> {
        let Part::Relay(end) = &self.part else { return Ok(false) };
        let mut news = end.news.borrow_mut();
        if news.len() > MAX_NEWS {
            return Err(End::Gone(Code::Stalled));
        }
        while inside.out.bytes() < LOW_WATER_BYTES
            && let Some(&(change, _)) = news.front()
        {
            let alike = news.iter().take(MOST_PRESENT).take_while(|(other, _)| *other == change).count();
            Presence::write(change, news.drain(..alike).map(|(_, present)| present), inside.out.plain());
        }
        if news.is_empty() {
            news.shrink_to(MOST_PRESENT);
        }
        Ok(!news.is_empty())
    }

    /// Another relay says something about itself.
    pub(super) fn hear_peer(self: &Rc<Self>, hub: &Rc<Hub>, kind: Kind, payload: &[u8]) -> Result<(), End> {
        let Part::Relay(end) = &self.part else { return Err(End::Said(Code::ProtocolError)) };
        // One that was replaced has nothing to say any more.
        if !hub.elsewhere.borrow().is_link(end.relay, &PeerLink(Rc::clone(self))) {
            return Ok(());
        }
        if kind == Kind::Standing {
            let Standing { draining } = Standing::decode(payload).map_err(broken)?;
            hub.elsewhere.borrow_mut().stands(end.relay, draining);
            return Ok(());
        }
        let presence = Presence::decode(payload).map_err(broken)?;
        for Present { client, epoch, dial, at_ms } in presence.providers() {
            let (client, claim) = (ClientId(client), Claim { epoch, dial, at_ms });
            if presence.change == PresenceChange::Came {
                if !hub.elsewhere.borrow_mut().came(end.relay, client, claim) {
                    tracing::error!(relay = %end.relay, "another relay has more providers than can be known");
                    return Err(End::Said(Code::Busy));
                }
                hub.yield_to_others(client);
            } else {
                hub.elsewhere.borrow_mut().left(end.relay, client, claim);
                hub.take_back(client);
            }
        }
        if presence.change == PresenceChange::Whole {
            hub.elsewhere.borrow_mut().whole(end.relay);
            hub.take_back_all();
        }
        Ok(())
    }
}

impl Hub {
    /// Links to other relays.
    pub(super) fn peers(&self) -> Vec<Rc<Connection>> {
        self.elsewhere.borrow().links().map(|link| Rc::clone(&link.0)).collect()
    }

    /// The newest start of a client that is known: for a provider, on any relay. Of others, no relay's word is taken.
    pub(crate) fn newest_epoch(&self, client: ClientId, is_provider: bool) -> Option<u64> {
        let here = self.client(client).map(|connection| connection.epoch);
        let there = if is_provider { self.elsewhere.borrow().find(client) } else { None };
        here.max(there.map(|there| there.claim.epoch))
    }

    /// Where clients may go instead.
    pub(crate) fn other_addresses(&self) -> Vec<String> {
        let mut addresses: Vec<_> =
            self.elsewhere.borrow().addresses().iter().map(|address| address.to_string()).collect();
        // Whoever is sent away goes to the first: not everybody to the same.
        fastrand::shuffle(&mut addresses);
        for other in &self.config.other_addresses {
            if !addresses.contains(other) {
                addresses.push(other.clone());
            }
        }
        addresses
    }

    /// A link stands: its relay is told all that is here. `false` if another link is kept.
    fn gain_peer(&self, link: &Rc<Connection>, who: Introduced) -> bool {
        let (relay, address) = (who.relay, Rc::clone(&who.address));
        let linked = self.elsewhere.borrow_mut().link_up(who, PeerLink(Rc::clone(link)), self.clock.now());
        match linked {
            Linked::Unwanted => return false,
            Linked::Holds(before) => {
                if let Some(before) = before {
                    before.0.end(Code::Superseded);
                }
            }
        }
        let Part::Relay(end) = &link.part else { return false };
        tracing::info!(%relay, %address, dialled = end.dialled, "a link to another relay is up");
        if self.draining.get() {
            Standing { draining: true }.write(link.inside.borrow_mut().out.plain());
        }
        for provider in self.clients.borrow().values().filter(|client| client.is_provider()) {
            end.say(PresenceChange::Came, provider.present());
        }
        let nobody = Present { client: uuid::Uuid::nil(), epoch: 0, dial: 0, at_ms: unix_ms() };
        end.say(PresenceChange::Whole, nobody);
        self.elsewhere_changed.send_replace(());
        true
    }

    pub(super) fn lose_peer(&self, link: &Rc<Connection>, end: &PeerEnd) {
        let now = self.clock.now();
        self.elsewhere.borrow_mut().link_down(end.relay, &PeerLink(Rc::clone(link)), now);
        self.elsewhere_changed.send_replace(());
    }

    pub(super) fn tell_standing(&self, standing: Standing) {
        for peer in self.peers() {
            standing.write(peer.inside.borrow_mut().out.plain());
            self.later(&peer);
        }
    }

    /// A provider has come or left: the other relays are told.
    pub(super) fn tell_peers(&self, change: PresenceChange, provider: &Connection) {
        for peer in self.elsewhere.borrow().links() {
            if let Part::Relay(end) = &peer.0.part {
                end.say(change, provider.present());
                self.later(&peer.0);
            }
        }
    }

    /// Another relay has a provider: if it has the better claim, this one gives it up. A newer start ends the older; a start that
    /// has moved may let its streams here end, if they are alive.
    fn yield_to_others(&self, client: ClientId) {
        let Some(own) = self.client(client).filter(|own| own.is_provider()) else { return };
        let there = self.elsewhere.borrow().find(client);
        let Some(there) = there.filter(|_| !self.elsewhere.borrow().holds(client, own.claim())) else {
            return;
        };
        if there.claim.epoch > own.epoch {
            tracing::info!(%client, relay = %there.relay, "a newer start of a provider is at another relay");
            return own.end(Code::Superseded);
        }
        tracing::debug!(%client, relay = %there.relay, "a provider has moved to another relay");
        self.clients.borrow_mut().remove(&client);
        self.set_aside(&own);
        self.providers.set(self.providers.get() - 1);
        let (epoch, cause) = (own.epoch, Code::Draining.number());
        self.note(super::Presence::Left { client, epoch, cause, at_ms: unix_ms() });
        self.tell_peers(PresenceChange::Left, &own);
    }

    /// Its client is elsewhere now: it ends with its streams, or when there are too many of that client.
    pub(super) fn set_aside(&self, connection: &Rc<Connection>) {
        for beyond in self.aside.borrow_mut().push(connection.client, connection) {
            beyond.end(Code::Draining);
        }
    }

    /// Whoever had a provider has lost it: a connection of it that was set aside here may still be alive.
    fn take_back(self: &Rc<Self>, client: ClientId) {
        let aside = self
            .aside
            .borrow()
            .of(client)
            .find(|aside| aside.is_provider() && !aside.drained.get() && aside.ending.get().is_none());
        let Some(aside) = aside else { return };
        if self.client(client).is_some() || !self.elsewhere.borrow().holds(client, aside.claim()) {
            return;
        }
        self.aside.borrow_mut().remove(client, &aside);
        aside.enter(self, "".into());
        // It had left, by the records: it is back as of now.
        if let Some((software, _)) = aside.came.get() {
            let (epoch, software, at_ms) = (aside.epoch, software.clone(), unix_ms());
            self.note(super::Presence::Came { client, epoch, software, at_ms });
        }
    }

    fn take_back_all(self: &Rc<Self>) {
        let clients = self.aside.borrow().clients();
        for client in clients {
            self.take_back(client);
        }
    }
}
