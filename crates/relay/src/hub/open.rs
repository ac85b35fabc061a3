//! How a stream comes to be.

use super::connection::{End, Part};
use super::data::Unlinked;
use super::inside::{Inside, Route};
use super::peer::MAX_PEER_STREAMS;
use super::{Connection, Hub, PeerLink};
use crate::config::Forwarding;
use crate::contracts::Contract;
use crate::counters::add;
use crate::elsewhere::Whereabouts;
use clock::unix_ms;
use link::message::{Moved, Open, Opened, Refuse};
use link::{Code, SendCredit};
use std::rc::Rc;
use std::time::Duration;
use trust::{ClientId, ContractId};

/// An open waits no longer than this for its provider, whatever the opener says.
const GREATEST_DEADLINE: Duration = Duration::from_secs(60);
/// Relays that an open may pass besides the first.
const MAX_HOPS: u8 = 1;

/// An open that is not passed on.
struct Turned(Code, &'static str);

const GONE: Turned = Turned(Code::ProviderGone, "the provider is not connected");
const STALE: Turned = Turned(Code::Stale, "the provider has started anew");
const CROWDED: Turned = Turned(Code::Busy, "slow receivers fill this relay");

/// The provider's newer start, if an open of a client names an older one: a list that is days old still leads to it, though the seal
/// must be made for the start that is here.
fn started_anew(hub: &Hub, open: &Open<'_>) -> Option<u64> {
    let (provider, epoch) = open.provider.filter(|(_, epoch)| *epoch != 0)?;
    let here = hub.client(ClientId(provider)).filter(|here| here.is_provider())?;
    (epoch < here.epoch).then_some(here.epoch)
}

/// Who carries an open, or where to.
enum Found {
    /// A provider, or the link to the relay that has it; and what pays, if it is counted here.
    Carrier { by: Rc<Connection>, contract: Option<Rc<Contract>> },
    /// The opener is to go there.
    Moved(Whereabouts<PeerLink>),
}

impl Whereabouts<PeerLink> {
    /// The link to the relay that has the provider, if it takes a stream now.
    fn takes(self, epoch: u64) -> Result<Rc<Connection>, Turned> {
        if epoch != 0 && epoch != self.claim.epoch {
            return Err(STALE);
        }
        let link = self.link.ok_or(Turned(Code::ProviderGone, "there is no link to the provider's relay"))?.0;
        let there = link.inside.borrow();
        if there.routes.len() >= MAX_PEER_STREAMS {
            return Err(Turned(Code::TooManyStreams, "too many streams between two relays"));
        }
        if there.out.bytes() > super::data::BEHIND_BYTES {
            return Err(Turned(Code::Busy, "the provider's relay takes too little of what it is sent"));
        }
        if there.last_stream >= u32::MAX - 2 {
            link.end(Code::Draining);
            return Err(Turned(Code::ProviderGone, "the link to the provider's relay begins anew"));
        }
        drop(there);
        Ok(link)
    }
}

impl Hub {
    /// An open for a provider that is elsewhere is passed on; otherwise its opener is told where to go.
    fn forwards(&self, asked: bool, there: &Whereabouts<PeerLink>) -> bool {
        match self.config.forwarding {
            Forwarding::Never => false,
            Forwarding::Asked => asked,
            Forwarding::Always => asked || there.link.is_some(),
        }
    }
}

impl Connection {
    /// An opener wants a stream.
    pub(super) fn open(
        self: &Rc<Self>,
        hub: &Rc<Hub>,
        stream: u32,
        open: &Open<'_>,
        touched: &mut Vec<Rc<Self>>,
    ) -> Result<(), End> {
        add(&hub.counters.opens, 1);
        // Numbers only grow: one that comes again is no late frame, but a fault.
        let is_new = match &self.part {
            Part::Relay(end) => end.hears(stream),
            _ => stream > std::mem::replace(&mut self.inside.borrow_mut().last_stream, stream),
        };
        if !is_new {
            return Err(End::Said(Code::ProtocolError));
        }
        if !matches!(self.part, Part::Relay(_))
            && let Some(epoch) = started_anew(hub, open)
        {
            add(&hub.counters.moved, 1);
            let address = hub.config.reached_at();
            Moved { address: &address, epoch }.write(stream, self.inside.borrow_mut().out.plain());
            return Ok(());
        }
        let found = match &self.part {
            Part::Relay(_) => Self::find_for_peer(hub, self, open),
            _ => self.find(hub, open),
        };
        match found {
            Ok(Found::Carrier { by, contract }) => {
                self.pass_on(hub, stream, open, &by, contract);
                super::data::touch(touched, &by);
            }
            Ok(Found::Moved(there)) => {
                add(&hub.counters.moved, 1);
                Moved { address: &there.address, epoch: there.claim.epoch }
                    .write(stream, self.inside.borrow_mut().out.plain());
            }
            Err(Turned(code, cause)) => {
                hub.counters.refuse(code);
                let retry_after = matches!(code, Code::Busy).then_some(Duration::from_secs(1));
                Refuse { code, cause: cause.into(), retry_after }
                    .write(stream, self.inside.borrow_mut().out.plain());
            }
        }
        Ok(())
    }

    /// What an open of a client names, if it may have it.
    fn find(&self, hub: &Hub, open: &Open<'_>) -> Result<Found, Turned> {
        let (provider, epoch) = open.provider.ok_or(Turned(Code::ProtocolError, "no provider is named"))?;
        if open.hops > MAX_HOPS {
            return Err(Turned(Code::ProtocolError, "too many relays"));
        }
        if hub.is_crowded() {
            return Err(CROWDED);
        }
        if hub.journal_full.get() {
            return Err(Turned(Code::Busy, "this relay cannot write down what is used"));
        }
        let contract = hub.contracts.find(ContractId(open.contract), self.client);
        let contract = contract.ok_or(Turned(Code::ContractInvalid, "the contract is not known here"))?;
        if !contract.pays(unix_ms()) {
            return Err(Turned(Code::ContractSpent, "the contract's bytes are used up, or it has expired"));
        }
        if self.inside.borrow().routes.len()
            >= usize::try_from(hub.config.streams_per_opener).unwrap_or(usize::MAX)
        {
            return Err(Turned(Code::TooManyStreams, "too many streams on this connection"));
        }
        let by = match hub.client(ClientId(provider)).filter(|here| here.is_provider()) {
            Some(here) => here.takes(hub, epoch)?,
            None if open.hops > 0 => return Err(GONE),
            None => {
                let there = hub.elsewhere.borrow().find(ClientId(provider)).ok_or(GONE)?;
                let started_anew = epoch != 0 && epoch < there.claim.epoch;
                if started_anew || !hub.forwards(open.forward, &there) {
                    return Ok(Found::Moved(there));
                }
                add(&hub.counters.forwarded, 1);
                there.takes(epoch)?
            }
        };
        Ok(Found::Carrier { by, contract: Some(contract) })
    }

    /// What an open names that another relay passes on. That one has looked at the contract, and counts.
    fn find_for_peer(hub: &Hub, link: &Self, open: &Open<'_>) -> Result<Found, Turned> {
        let (Some((provider, epoch)), Some(_)) = (open.provider, open.opener) else {
            return Err(Turned(Code::ProtocolError, "provider or opener is not named"));
        };
        if open.hops != MAX_HOPS {
            return Err(Turned(Code::ProtocolError, "it was not passed on by a relay, or by too many"));
        }
        if hub.is_crowded() {
            return Err(CROWDED);
        }
        if link.inside.borrow().routes.len() >= MAX_PEER_STREAMS {
            return Err(Turned(Code::TooManyStreams, "too many streams between two relays"));
        }
        // Never sent on again: who passed it on hears where the provider is.
        let here = hub.client(ClientId(provider)).filter(|here| here.is_provider()).ok_or(GONE)?;
        Ok(Found::Carrier { by: here.takes(hub, epoch)?, contract: None })
    }

    /// A provider that is connected here, if it takes a stream now.
    fn takes(self: Rc<Self>, hub: &Hub, epoch: u64) -> Result<Rc<Self>, Turned> {
        if epoch != 0 && epoch != self.epoch {
            return Err(STALE);
        }
        // One that was told to go carries until it has come to another relay.
        if self.ending.get().is_some() {
            return Err(Turned(Code::ProviderGone, "the provider is leaving"));
        }
        let most = usize::try_from(hub.config.streams_per_provider).unwrap_or(usize::MAX);
        let there = self.inside.borrow();
        if there.routes.len() >= most {
            return Err(Turned(Code::TooManyStreams, "the provider carries as many streams as it may"));
        }
        if there.out.bytes() > super::data::BEHIND_BYTES {
            return Err(Turned(Code::Busy, "the provider takes too little of what it is sent"));
        }
        if there.last_stream == u32::MAX {
            // Four thousand million streams later: a new connection begins anew.
            self.end(Code::Draining);
            return Err(Turned(Code::ProviderGone, "the provider is leaving"));
        }
        drop(there);
        Ok(self)
    }

    fn pass_on(
        self: &Rc<Self>,
        hub: &Rc<Hub>,
        stream: u32,
        open: &Open<'_>,
        carrier: &Rc<Self>,
        contract: Option<Rc<Contract>>,
    ) {
        let deadline = Duration::from_millis(u64::from(open.deadline_ms)).min(GREATEST_DEADLINE);
        let is_further = matches!(carrier.part, Part::Relay(_));
        let mut there = carrier.inside.borrow_mut();
        // Both ends of a link between relays open streams: one takes the odd numbers, the other the even ones.
        let number = there.last_stream + if is_further { 2 } else { 1 };
        there.last_stream = number;
        let route = |peer: &Rc<Self>, peer_stream, answers, window| Route {
            peer: Rc::clone(peer),
            peer_stream,
            answers,
            contract: contract.clone(),
            opening: true,
            credit: SendCredit::new(window),
            held_credit: 0,
            owed_credit: 0,
            ended: false,
            fin: false,
            parked: Vec::new(),
            parked_since: overload::Moment::ORIGIN,
        };
        there.routes.insert(number, route(self, stream, true, open.window_bytes));
        let passed = Open {
            provider: open.provider.filter(|_| is_further),
            opener: if matches!(self.part, Part::Relay(_)) { open.opener } else { Some(self.client.0) },
            deadline_ms: u32::try_from(deadline.as_millis()).unwrap_or(u32::MAX),
            hops: if is_further { MAX_HOPS } else { open.hops },
            forward: false,
            ..*open
        };
        passed.write(number, there.out.plain());
        drop(there);
        self.inside.borrow_mut().routes.insert(stream, route(carrier, number, false, 0));
        hub.streams.set(hub.streams.get() + 1);
        hub.deadlines.add(hub, deadline, self, stream);
    }

    /// The provider has read an open.
    pub(super) fn opened(&self, hub: &Hub, stream: u32, opened: Opened<'_>, touched: &mut Vec<Rc<Self>>) {
        let (peer, peer_stream) = {
            let mut guard = self.inside.borrow_mut();
            let Some(route) = guard.routes.get_mut(&stream).filter(|route| route.opening && route.answers)
            else {
                return;
            };
            route.opening = false;
            (Rc::clone(&route.peer), route.peer_stream)
        };
        let mut guard = peer.inside.borrow_mut();
        let Inside { routes, out, .. } = &mut *guard;
        if let Some(route) = routes.get_mut(&peer_stream) {
            route.opening = false;
            route.credit = SendCredit::new(opened.window_bytes);
            opened.write(peer_stream, out.plain());
            add(&hub.counters.opened, 1);
        }
        drop(guard);
        super::data::touch(touched, &peer);
    }

    /// The provider does not take an open.
    pub(super) fn turned_away(
        &self,
        hub: &Hub,
        stream: u32,
        refuse: &Refuse<'_>,
        touched: &mut Vec<Rc<Self>>,
    ) {
        let answers = self.inside.borrow().routes.get(&stream).is_some_and(|route| route.answers);
        if !answers || !self.is_opening(stream) {
            return;
        }
        let refuse = Refuse { code: refuse.code.from_provider(), ..refuse.clone() };
        hub.counters.refuse(refuse.code);
        if let Some(Unlinked { peer, peer_stream, .. }) = self.unlink(hub, stream) {
            refuse.write(peer_stream, peer.inside.borrow_mut().out.plain());
            super::data::touch(touched, &peer);
        }
    }

    /// The provider has not answered this open yet.
    pub(super) fn is_opening(&self, stream: u32) -> bool {
        self.inside.borrow().routes.get(&stream).is_some_and(|route| route.opening)
    }

    /// Something is to be done if its time is over.
    pub(super) fn waits(&self, stream: u32) -> bool {
        let inside = self.inside.borrow();
        inside.routes.get(&stream).is_some_and(|route| route.opening || !route.parked.is_empty())
    }

    /// An open's deadline has passed: if its provider has not answered, the opener is told, and the provider too.
    pub(super) fn overdue(self: &Rc<Self>, hub: &Hub, stream: u32) {
        if !self.is_opening(stream) {
            return self.unpaid(hub, stream);
        }
        hub.counters.refuse(Code::Timeout);
        if let Some(Unlinked { peer: provider, peer_stream: number, .. }) = self.unlink(hub, stream) {
            let cause = "the provider did not answer within the deadline".into();
            Refuse { code: Code::Timeout, cause, retry_after: None }
                .write(stream, self.inside.borrow_mut().out.plain());
            link::message::Reset::because(Code::Timeout)
                .write(number, provider.inside.borrow_mut().out.plain());
            provider.flush_from_outside(hub);
            self.flush_from_outside(hub);
        }
    }
}
