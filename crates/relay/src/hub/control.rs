//! What a client sends, frame by frame.

use super::connection::{End, Part};
use super::data::{HIGH_WATER_BYTES, LOW_WATER_BYTES};
use super::inside::Inside;
use super::{Connection, Hub};
use clock::unix_ms;
use link::message::{Contract, Open, Opened, Refuse, Reset, decode_credit, write_credit};
use link::{Code, HEADER_BYTES, Header, Kind, Malformed, write_frame};
use std::rc::Rc;
use trust::ContractId;

impl Connection {
    /// Handles all whole frames of `plain`, keeps the rest, and sends what came of them.
    pub(super) fn handle(self: &Rc<Self>, hub: &Rc<Hub>, plain: &mut [u8]) -> Result<(), End> {
        let mut at = 0;
        // The other ends that something was put into; few, since frames of one stream come together.
        let mut touched: Vec<Rc<Self>> = Vec::new();
        let result = loop {
            let header = match Header::parse(&plain[at..]) {
                Ok(Some(header)) => header,
                Ok(None) => break Ok(()),
                Err(_) => break Err(End::Said(Code::ProtocolError)),
            };
            let end = at + HEADER_BYTES + header.length;
            if end > plain.len() {
                break Ok(());
            }
            let frame = &mut plain[at..end];
            at = end;
            let Some(kind) = header.kind else { continue };
            let handled = if kind == Kind::Data {
                self.data(hub, header.stream, frame, &mut touched);
                Ok(())
            } else {
                self.control(hub, kind, header.stream, &frame[HEADER_BYTES..], &mut touched)
            };
            if handled.is_err() {
                break handled;
            }
        };
        self.inside.borrow_mut().partial = plain[at..].to_vec();
        super::data::flush_all(hub, &touched);
        result?;
        self.flush(hub)
    }

    fn control(
        self: &Rc<Self>,
        hub: &Rc<Hub>,
        kind: Kind,
        stream: u32,
        payload: &[u8],
        touched: &mut Vec<Rc<Self>>,
    ) -> Result<(), End> {
        match kind {
            Kind::Ping => {
                write_frame(self.inside.borrow_mut().out.plain(), Kind::Pong, 0, |out| {
                    out.extend_from_slice(payload.get(..8).unwrap_or_default());
                });
            }
            Kind::Pong => {}
            Kind::Refuse if stream == 0 => {
                let refuse = Refuse::decode(payload).map_err(broken)?;
                return Err(End::Gone(refuse.code));
            }
            Kind::Contract if matches!(self.part, Part::Opener) => {
                self.show(hub, Contract::decode(payload).map_err(broken)?, touched);
            }
            Kind::Open if !self.is_provider() => {
                let open = Open::decode(payload).map_err(broken)?;
                self.open(hub, stream, &open, touched)?;
            }
            Kind::Opened if !matches!(self.part, Part::Opener) => {
                let opened = Opened::decode(payload).map_err(broken)?;
                self.opened(hub, stream, opened, touched);
            }
            Kind::Refuse if !matches!(self.part, Part::Opener) => {
                let refuse = Refuse::decode(payload).map_err(broken)?;
                self.turned_away(hub, stream, &refuse, touched);
            }
            Kind::Credit => {
                let bytes = decode_credit(payload).map_err(broken)?;
                self.credit(hub, stream, bytes, touched);
            }
            Kind::Fin => self.fin(hub, stream, touched),
            Kind::Reset => {
                let reset = Reset::decode(payload).map_err(broken)?;
                self.reset(hub, stream, reset, touched);
            }
            Kind::Presence | Kind::Standing => return self.hear_peer(hub, kind, payload),
            _ => return Err(End::Said(Code::ProtocolError)),
        }
        Ok(())
    }

    /// A contract that cannot be taken is told by the open that names it.
    fn show(&self, hub: &Hub, contract: Contract<'_>, touched: &mut Vec<Rc<Self>>) {
        let verified = crate::door::contract(&hub.keys.borrow(), contract.text, unix_ms());
        let shown = verified.and_then(|claims| {
            if claims.opener != self.client {
                return Err(Code::ContractInvalid);
            }
            hub.contracts.show(&claims, contract.follows.map(ContractId), unix_ms())
        });
        match (shown, contract.follows) {
            (Ok(()), Some(before)) => hub.resume_after(ContractId(before), touched),
            (Ok(()), None) => {}
            (Err(code), _) => hub.counters.refuse(code),
        }
    }

    /// The receiver, here, has room for more: the sender, there, is told, unless the receiver is behind as it is. Only who is
    /// behind is held back, however full the relay is: the others have done nothing.
    fn credit(&self, hub: &Hub, stream: u32, bytes: u32, touched: &mut Vec<Rc<Self>>) {
        let mut guard = self.inside.borrow_mut();
        let inside = &mut *guard;
        let limit = if hub.is_filling() { LOW_WATER_BYTES } else { HIGH_WATER_BYTES };
        let holds = inside.out.bytes() > limit;
        let Some(route) = inside.routes.get_mut(&stream) else { return };
        if holds {
            if route.held_credit == 0 && route.owed_credit == 0 {
                inside.holding.push(stream);
            }
            route.held_credit = route.held_credit.saturating_add(bytes);
            return;
        }
        let (peer, peer_stream) = (Rc::clone(&route.peer), route.peer_stream);
        drop(guard);
        peer.grant(peer_stream, bytes);
        super::data::touch(touched, &peer);
    }

    /// This end may send more. One that takes nothing is told later, in one sum: else many small grants would fill the relay.
    fn grant(&self, stream: u32, bytes: u32) {
        let mut guard = self.inside.borrow_mut();
        let Inside { routes, out, holding, .. } = &mut *guard;
        let Some(route) = routes.get_mut(&stream) else { return };
        if out.bytes() > HIGH_WATER_BYTES {
            if route.held_credit == 0 && route.owed_credit == 0 {
                holding.push(stream);
            }
            route.owed_credit = route.owed_credit.saturating_add(bytes);
        } else {
            route.credit.grant(bytes);
            write_credit(stream, bytes, out.plain());
        }
    }

    /// What was held back and can be passed on now: to this end at once; what it has granted itself is given back.
    pub(super) fn releasable(inside: &mut Inside) -> Vec<(Rc<Self>, u32, u32)> {
        if inside.holding.is_empty() || inside.out.bytes() > LOW_WATER_BYTES {
            return Vec::new();
        }
        let mut released = Vec::new();
        for stream in std::mem::take(&mut inside.holding) {
            let Some(route) = inside.routes.get_mut(&stream) else { continue };
            let (held, owed) =
                (std::mem::take(&mut route.held_credit), std::mem::take(&mut route.owed_credit));
            if owed > 0 {
                route.credit.grant(owed);
                write_credit(stream, owed, inside.out.plain());
            }
            if held > 0 {
                released.push((Rc::clone(&route.peer), route.peer_stream, held));
            }
        }
        released
    }

    pub(super) fn release(&self, hub: &Hub, released: Vec<(Rc<Self>, u32, u32)>) {
        for (peer, stream, bytes) in released {
            peer.grant(stream, bytes);
            // Its own task sends it: this may be its own turn.
            hub.later(&peer);
        }
    }
}

impl Hub {
    /// The connection's own task is to send what it has.
    pub(super) fn later(&self, connection: &Connection) {
        connection.poke.notify_one();
    }
}

/// A client that breaks the protocol is told so, and closed.
pub(super) fn broken(_: Malformed) -> End {
    End::Said(Code::ProtocolError)
}
