//! Which providers the other relays have, and which relay has one that several claim: a rule, without sockets.
//!
//! A provider's connections are in one order, the same at every relay ([`Claim`]); the greatest has the provider. Each relay hears
//! of the others' over its links, and gives up what is less. So two relays hold the same provider for no longer than a link's
//! delay, and whatever a partition has let happen is put right by the first exchange after it.

use overload::Moment;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::time::Duration;
use trust::{ClientId, RelayId};

/// Relays that are known at once.
pub(crate) const MAX_PEERS: usize = 32;
/// Providers of other relays that are known at once.
pub(crate) const MAX_ELSEWHERE: usize = 1 << 20;
/// What a relay has said is kept for so long after its link broke: openers may still be sent there.
pub(crate) const KEPT: Duration = Duration::from_secs(600);
/// Two links of two relays that dialled each other stand within this time of each other: then both keep the same one. One that is
/// older, and whose other end dials again, is half-open.
const CROSSING: Duration = Duration::from_secs(10);

/// A provider's connection to some relay. A greater one came later: its start is newer, or its start says that it is a later one;
/// where a client does not say, the relays' clocks must do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Claim {
    /// The number of the provider's start.
    pub epoch: u64,
    /// Which of the start's connections.
    pub dial: u64,
    /// When it came, by its relay's clock, ms since 1970.
    pub at_ms: u64,
}

/// Where a provider is.
#[derive(Clone, Debug)]
pub(crate) struct Whereabouts<L> {
    pub relay: RelayId,
    pub claim: Claim,
    /// How that relay is reached, `host:port`.
    pub address: Rc<str>,
    /// The link to it, if it stands.
    pub link: Option<L>,
}

/// A relay that says hello, or answers to one.
#[derive(Clone, Debug)]
pub(crate) struct Introduced {
    pub relay: RelayId,
    /// The number of its start.
    pub epoch: u64,
    pub address: Rc<str>,
    /// The link was dialled from here.
    pub dialled: bool,
}

/// What becomes of a new link.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Linked<L> {
    /// It holds; the one before, if there is one, is to end.
    Holds(Option<L>),
    /// The one that stands is kept.
    Unwanted,
}

/// What all other relays have said. `L` is a link.
#[derive(Debug)]
pub(crate) struct Elsewhere<L> {
    own: RelayId,
    peers: HashMap<RelayId, Peer<L>>,
}

#[derive(Debug)]
struct Peer<L> {
    epoch: u64,
    address: Rc<str>,
    draining: bool,
    link: Option<(L, bool)>,
    /// Since when there is this link, or none.
    since: Moment,
    has: HashMap<ClientId, Claim>,
    /// What it has named so far over a new link; takes the place of `has` once it is whole.
    arriving: Option<HashMap<ClientId, Claim>>,
}

impl<L: Clone + PartialEq> Elsewhere<L> {
    /// Nothing is known yet; `own` is this relay.
    pub(crate) fn new(own: RelayId) -> Self {
        Self { own, peers: HashMap::new() }
    }

    /// A link stands.
    pub(crate) fn link_up(&mut self, who: Introduced, link: L, now: Moment) -> Linked<L> {
        let Introduced { relay, epoch, address, dialled } = who;
        self.forget(now);
        if relay == self.own || (self.peers.len() >= MAX_PEERS && !self.peers.contains_key(&relay)) {
            return Linked::Unwanted;
        }
        let own = self.own;
        let peer = self.peers.entry(relay).or_insert_with(|| Peer {
            epoch,
            address: Rc::clone(&address),
            draining: false,
            link: None,
            since: now,
            has: HashMap::new(),
            arriving: None,
        });
        if epoch < peer.epoch {
            return Linked::Unwanted;
        }
        if let Some((_, before_dialled)) = peer.link
            && epoch == peer.epoch
            && before_dialled != dialled
            && now.since(peer.since) < CROSSING
        {
            // Both have dialled: the one of the smaller name holds, at both ends.
            let is_smaller_ones = dialled == (own < relay);
            if !is_smaller_ones {
                return Linked::Unwanted;
            }
        }
        if epoch > peer.epoch {
            // Another start: whoever was there is not any more.
            peer.has = HashMap::new();
            peer.epoch = epoch;
        }
        peer.address = address;
        peer.draining = false;
        peer.arriving = Some(HashMap::new());
        peer.since = now;
        Linked::Holds(peer.link.replace((link, dialled)).map(|(before, _)| before))
    }

    /// A link is over. What the relay has said is kept for a while.
    pub(crate) fn link_down(&mut self, relay: RelayId, link: &L, now: Moment) {
        if let Some(peer) = self.peers.get_mut(&relay)
            && peer.link.as_ref().is_some_and(|(current, _)| current == link)
        {
            peer.link = None;
            peer.since = now;
            if let Some(arrived) = peer.arriving.take() {
                peer.has.extend(arrived);
            }
        }
    }

    /// A provider is there. `false` if there is no room for it.
    pub(crate) fn came(&mut self, relay: RelayId, client: ClientId, claim: Claim) -> bool {
        if self.providers() >= MAX_ELSEWHERE {
            return false;
        }
        if let Some(peer) = self.peers.get_mut(&relay) {
            peer.arriving.as_mut().unwrap_or(&mut peer.has).insert(client, claim);
        }
        true
    }

    /// A provider is there no more.
    pub(crate) fn left(&mut self, relay: RelayId, client: ClientId, claim: Claim) {
        let Some(peer) = self.peers.get_mut(&relay) else { return };
        for known in [Some(&mut peer.has), peer.arriving.as_mut()].into_iter().flatten() {
            if known.get(&client) == Some(&claim) {
                known.remove(&client);
            }
        }
    }

    /// It has named all that it has.
    pub(crate) fn whole(&mut self, relay: RelayId) {
        if let Some(peer) = self.peers.get_mut(&relay)
            && let Some(arrived) = peer.arriving.take()
        {
            peer.has = arrived;
        }
    }

    pub(crate) fn stands(&mut self, relay: RelayId, draining: bool) {
        if let Some(peer) = self.peers.get_mut(&relay) {
            peer.draining = draining;
        }
    }

    /// This link is the one to that relay.
    pub(crate) fn is_link(&self, relay: RelayId, link: &L) -> bool {
        self.peers
            .get(&relay)
            .is_some_and(|peer| peer.link.as_ref().is_some_and(|(current, _)| current == link))
    }

    /// There is a link to that relay.
    pub(crate) fn is_linked(&self, relay: RelayId) -> bool {
        self.peers.get(&relay).is_some_and(|peer| peer.link.is_some())
    }

    /// There is a link to a relay that says it is reached there.
    pub(crate) fn is_linked_to(&self, address: &str) -> bool {
        self.peers.values().any(|peer| peer.link.is_some() && &*peer.address == address)
    }

    fn claims(&self, client: ClientId) -> impl Iterator<Item = (Claim, RelayId, &Peer<L>)> {
        self.peers.iter().filter_map(move |(relay, peer)| {
            let arriving = peer.arriving.as_ref().and_then(|arriving| arriving.get(&client));
            Some((*arriving.or_else(|| peer.has.get(&client))?, *relay, peer))
        })
    }

    /// Which of the others has a provider: the greatest claim, of its newest start, and rather one that is not hearsay.
    pub(crate) fn find(&self, client: ClientId) -> Option<Whereabouts<L>> {
        let rank =
            |&(claim, relay, peer): &(Claim, _, &Peer<L>)| (claim.epoch, peer.link.is_some(), claim, relay);
        let (claim, relay, peer) = self.claims(client).max_by_key(rank)?;
        let link = peer.link.as_ref().map(|(link, _)| link.clone());
        Some(Whereabouts { relay, claim, address: Rc::clone(&peer.address), link })
    }

    /// A claim of this relay's own holds against all others. What a relay has said whose link is down holds only if it tells of a
    /// newer start: it may be gone, and the same start has come here from it.
    pub(crate) fn holds(&self, client: ClientId, own: Claim) -> bool {
        self.claims(client).all(|(claim, relay, peer)| {
            (claim, relay) < (own, self.own) || (peer.link.is_none() && claim.epoch == own.epoch)
        })
    }

    /// A claim for a connection that comes now, by this relay's clock: where clients do not say which of their connections is the
    /// later one, it is later than all that have been heard of, whatever the other clocks say.
    pub(crate) fn claim(&self, client: ClientId, epoch: u64, dial: u64, now_ms: u64) -> Claim {
        let alike = |claim: &Claim| (claim.epoch, claim.dial) == (epoch, dial);
        let last = self.claims(client).map(|(claim, ..)| claim).filter(alike).map(|claim| claim.at_ms).max();
        let at_ms = last.map_or(now_ms, |last| now_ms.max(last.saturating_add(1)));
        Claim { epoch, dial, at_ms }
    }

    /// Links that stand.
    pub(crate) fn links(&self) -> impl Iterator<Item = &L> {
        self.peers.values().filter_map(|peer| peer.link.as_ref().map(|(link, _)| link))
    }

    /// Where clients may be sent: relays with a link that do not drain.
    pub(crate) fn addresses(&self) -> Vec<Rc<str>> {
        let open = self.peers.values().filter(|peer| peer.link.is_some() && !peer.draining);
        open.map(|peer| Rc::clone(&peer.address)).collect()
    }

    /// Addresses of relays with a link, draining or not.
    pub(crate) fn linked_addresses(&self) -> HashSet<Rc<str>> {
        let linked = self.peers.values().filter(|peer| peer.link.is_some());
        linked.map(|peer| Rc::clone(&peer.address)).collect()
    }

    /// Providers that are known to be elsewhere; one that several name counts for each.
    pub(crate) fn providers(&self) -> usize {
        self.peers.values().map(|peer| peer.has.len() + peer.arriving.as_ref().map_or(0, HashMap::len)).sum()
    }

    /// Forgets what relays have said whose link broke long ago.
    pub(crate) fn forget(&mut self, now: Moment) {
        self.peers.retain(|_, peer| peer.link.is_some() || now.since(peer.since) < KEPT);
    }
}

#[cfg(test)]
mod tests;
