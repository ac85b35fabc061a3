//! What checks have in common: clients that are in, and a stream between two of them.

use super::{Subject, Verdict};
use crate::authority::Member;
use crate::wire::{CONTRACT, Frame, OPEN, OPENED, WELCOME, Wire, fields};
use anyhow::ensure;
use trust::{ContractId, Role};

/// The credit that both ends of a stream start with, unless a check says otherwise.
pub(super) const WINDOW: u32 = 200_000;
/// What stands for a sealed message: a relay cannot tell.
pub(super) const SEAL: &[u8] = b"a seal that nobody on the way can open";
pub(super) const PLAIN_ALPN: &[u8] = b"holdfast/1";

pub(super) const DONE: Verdict = Ok(Ok(()));

/// A client that was taken in.
pub(super) struct Client {
    pub(super) wire: Wire,
    pub(super) member: Member,
    pub(super) welcome: Frame,
    pub(super) epoch: u64,
}

impl Subject {
    pub(super) async fn dial(&self) -> anyhow::Result<Wire> {
        Wire::dial(&self.address, &self.authority, PLAIN_ALPN).await
    }

    /// A new client that has said hello.
    pub(super) async fn enter(&self, role: Role) -> anyhow::Result<Client> {
        let member = self.authority.member(role)?;
        self.enter_as(member, 7).await
    }

    pub(super) async fn enter_as(&self, member: Member, epoch: u64) -> anyhow::Result<Client> {
        let mut wire = self.dial().await?;
        let hello = wire.hello(&self.authority, &member, epoch);
        wire.send_raw(&hello.frame()).await?;
        let welcome = wire.expect(WELCOME, 0).await?;
        Ok(Client { wire, member, welcome, epoch })
    }

    /// An opener with a contract of so many bytes, and a provider.
    pub(super) async fn pair(&self, bytes: u64) -> anyhow::Result<Pair> {
        let provider = self.enter(Role::Provider).await?;
        let mut opener = self.enter(Role::Proxy).await?;
        let (contract, text) = self.authority.contract(&opener.member, bytes)?;
        opener.wire.send(CONTRACT, 0, &fields(&[(1, text.as_bytes())])).await?;
        Ok(Pair { opener, provider, contract, next: 1 })
    }
}

/// Both ends of a relay.
pub(super) struct Pair {
    pub(super) opener: Client,
    pub(super) provider: Client,
    pub(super) contract: ContractId,
    next: u32,
}

/// A stream's number at both ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    pub(super) opener: u32,
    pub(super) provider: u32,
}

/// An OPEN, to be changed.
pub(super) struct Open {
    pub(super) provider: [u8; 16],
    pub(super) epoch: u64,
    pub(super) contract: [u8; 16],
    pub(super) deadline_ms: u32,
    pub(super) window: u32,
}

impl Open {
    pub(super) fn payload(&self) -> Vec<u8> {
        fields(&[
            (1, &self.provider),
            (2, &self.epoch.to_be_bytes()),
            (3, &self.contract),
            (5, &self.deadline_ms.to_be_bytes()),
            (6, &[0]),
            (7, &self.window.to_be_bytes()),
            (8, SEAL),
        ])
    }
}

impl Pair {
    pub(super) fn open(&self) -> Open {
        Open {
            provider: self.provider.member.client.bytes(),
            epoch: 0,
            contract: self.contract.bytes(),
            deadline_ms: 10_000,
            window: WINDOW,
        }
    }

    /// Sends an OPEN; its number.
    pub(super) async fn ask(&mut self, open: &Open) -> anyhow::Result<u32> {
        let number = self.next;
        self.next += 1;
        self.opener.wire.send(OPEN, number, &open.payload()).await?;
        Ok(number)
    }

    /// Sends an OPEN that must reach the provider; the stream, and the frame there.
    pub(super) async fn ask_through(&mut self, open: &Open) -> anyhow::Result<(Stream, Frame)> {
        let opener = self.ask(open).await?;
        let frame = self.provider.wire.expect_any(OPEN).await?;
        ensure!(frame.stream != 0, "an OPEN on stream 0");
        Ok((Stream { opener, provider: frame.stream }, frame))
    }

    /// A stream that stands, with these credits for what opener and provider send.
    pub(super) async fn stream(
        &mut self,
        opener_credit: u32,
        provider_credit: u32,
    ) -> anyhow::Result<Stream> {
        let open = Open { window: provider_credit, ..self.open() };
        let (stream, _) = self.ask_through(&open).await?;
        let opened = fields(&[(1, &opener_credit.to_be_bytes()), (2, SEAL)]);
        self.provider.wire.send(OPENED, stream.provider, &opened).await?;
        self.opener.wire.expect(OPENED, stream.opener).await?;
        Ok(stream)
    }
}

/// A code as fields of REFUSE or RESET.
pub(super) fn code(code: u16) -> Vec<u8> {
    fields(&[(1, &code.to_be_bytes())])
}
