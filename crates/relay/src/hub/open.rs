//! How a stream comes to be.

use super::connection::End;
use super::inside::{Inside, Route};
use super::{Connection, Hub};
use crate::contracts::Contract;
use crate::counters::add;
use clock::unix_ms;
use link::message::{Open, Opened, Refuse};
use link::{Code, SendCredit};
use std::rc::Rc;
use std::time::Duration;
use trust::{ClientId, ContractId, Role};

/// An open waits no longer than this for its provider, whatever the opener says.
const GREATEST_DEADLINE: Duration = Duration::from_secs(60);
/// Relays that an open may pass besides the first.
const MAX_HOPS: u8 = 1;

/// An open that is not passed on.
struct Turned(Code, &'static str);

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
        {
            let mut inside = self.inside.borrow_mut();
            // Numbers only grow: one that comes again is no late frame, but a fault.
            if stream <= inside.last_stream {
                return Err(End::Said(Code::ProtocolError));
            }
            inside.last_stream = stream;
        }
        match self.find(hub, open) {
            Ok((provider, contract)) => {
                self.pass_on(hub, stream, open, &provider, contract);
                super::data::touch(touched, &provider);
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

    /// What an open names, if it may have it.
    fn find(&self, hub: &Hub, open: &Open<'_>) -> Result<(Rc<Self>, Rc<Contract>), Turned> {
        let (provider, epoch) = open.provider.ok_or(Turned(Code::ProtocolError, "no provider is named"))?;
        if open.hops > MAX_HOPS {
            return Err(Turned(Code::ProtocolError, "too many relays"));
        }
        if hub.is_crowded() {
            return Err(Turned(Code::Busy, "slow receivers fill this relay"));
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
        let provider = hub.client(ClientId(provider)).filter(|provider| provider.role == Role::Provider);
        let provider = provider.ok_or(Turned(Code::ProviderGone, "the provider is not connected here"))?;
        if epoch != 0 && epoch != provider.epoch {
            return Err(Turned(Code::Stale, "the provider has started anew"));
        }
        if provider.drained.get() || provider.ending.get().is_some() {
            return Err(Turned(Code::ProviderGone, "the provider is leaving"));
        }
        let most = usize::try_from(hub.config.streams_per_provider).unwrap_or(usize::MAX);
        let there = provider.inside.borrow();
        if there.routes.len() >= most {
            return Err(Turned(Code::TooManyStreams, "the provider carries as many streams as it may"));
        }
        if there.out.bytes() > super::data::BEHIND_BYTES {
            return Err(Turned(Code::Busy, "the provider takes too little of what it is sent"));
        }
        if there.last_stream == u32::MAX {
            // Four thousand million streams later: a new connection begins anew.
            provider.end(Code::Draining);
            return Err(Turned(Code::ProviderGone, "the provider is leaving"));
        }
        drop(there);
        Ok((provider, contract))
    }

    fn pass_on(
        self: &Rc<Self>,
        hub: &Rc<Hub>,
        stream: u32,
        open: &Open<'_>,
        provider: &Rc<Self>,
        contract: Rc<Contract>,
    ) {
        let deadline = Duration::from_millis(u64::from(open.deadline_ms)).min(GREATEST_DEADLINE);
        let mut there = provider.inside.borrow_mut();
        let number = there.last_stream + 1;
        there.last_stream = number;
        let route = |peer: &Rc<Self>, peer_stream, window| Route {
            peer: Rc::clone(peer),
            peer_stream,
            contract: Rc::clone(&contract),
            opening: true,
            credit: SendCredit::new(window),
            held_credit: 0,
            owed_credit: 0,
            ended: false,
            fin: false,
            parked: Vec::new(),
            parked_since: overload::Moment::ORIGIN,
        };
        there.routes.insert(number, route(self, stream, open.window_bytes));
        let passed = Open {
            provider: None,
            opener: Some(self.client.0),
            deadline_ms: u32::try_from(deadline.as_millis()).unwrap_or(u32::MAX),
            ..*open
        };
        passed.write(number, there.out.plain());
        drop(there);
        self.inside.borrow_mut().routes.insert(stream, route(provider, number, 0));
        hub.streams.set(hub.streams.get() + 1);
        hub.deadlines.add(hub, deadline, self, stream);
    }

    /// The provider has read an open.
    pub(super) fn opened(&self, hub: &Hub, stream: u32, opened: Opened<'_>, touched: &mut Vec<Rc<Self>>) {
        let (peer, peer_stream) = {
            let mut guard = self.inside.borrow_mut();
            let Some(route) = guard.routes.get_mut(&stream).filter(|route| route.opening) else { return };
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
        if !self.is_opening(stream) {
            return;
        }
        let refuse = Refuse { code: refuse.code.from_provider(), ..refuse.clone() };
        hub.counters.refuse(refuse.code);
        if let Some((peer, peer_stream, _)) = self.unlink(hub, stream) {
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
        if let Some((provider, number, _)) = self.unlink(hub, stream) {
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
