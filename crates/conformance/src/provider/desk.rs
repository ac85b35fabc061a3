//! The relay's side of one check.

use super::{Credentials, Running, Subject};
use crate::authority::Member;
use crate::wire::{HELLO, SOON, WELCOME, Wire, fields};
use anyhow::{Context, ensure};
use clock::unix_ms;
use rustls::ServerConfig;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use trust::{Proof, Role};

/// The pace of these checks: the back-off's base and cap, ms.
pub(super) const BASE_MS: u32 = 100;
pub(super) const CAP_MS: u32 = 300;
pub(super) const WINDOW: u32 = 65_536;
/// A provider that may dial now does so in time; beyond it, whatever a busy machine takes.
pub(super) const DIAL_LIMIT: Duration = Duration::from_secs(10);

/// By lot it may be several in a row.
const MOST_WEBSOCKETS: usize = 12;

pub(super) struct Desk<'a> {
    subject: &'a Subject,
    config: Arc<ServerConfig>,
    pub(super) member: Member,
    pub(super) target: TcpListener,
    /// Ends with the check.
    running: Option<Running>,
}

impl<'a> Desk<'a> {
    /// A provider of its own for this check.
    pub(super) async fn open(subject: &'a Subject, config: Arc<ServerConfig>) -> anyhow::Result<Self> {
        let member = subject.authority.member(Role::Provider)?;
        let target = TcpListener::bind("127.0.0.1:0").await?;
        let mut desk = Self { subject, config, member, target, running: None };
        desk.start().await?;
        Ok(desk)
    }

    /// Another provider, of another client.
    pub(super) async fn restart(&mut self) -> anyhow::Result<()> {
        self.member = self.subject.authority.member(Role::Provider)?;
        self.start().await
    }

    async fn start(&mut self) -> anyhow::Result<()> {
        self.running = None;
        // What an earlier provider still had under way.
        while let Ok(accepted) = timeout(Duration::from_millis(20), self.subject.listener.accept()).await {
            drop(accepted?);
        }
        let credentials = Credentials {
            relay: self.subject.listener.local_addr()?.to_string(),
            network: self.subject.authority.network,
            client: self.member.client,
            secret: *self.member.identity.secret(),
            token: self.member.token.clone(),
            targets: vec![self.target.local_addr()?],
        };
        self.running = Some((self.subject.start)(&credentials).context("the provider does not start")?);
        Ok(())
    }

    /// The next connection of the provider, before TLS; `None` if there is none in time.
    pub(super) async fn dialled_within(&self, limit: Duration) -> anyhow::Result<Option<TcpStream>> {
        match timeout(limit, self.subject.listener.accept()).await {
            Ok(accepted) => Ok(Some(accepted?.0)),
            Err(_) => Ok(None),
        }
    }

    pub(super) async fn dialled(&self) -> anyhow::Result<TcpStream> {
        self.dialled_within(DIAL_LIMIT).await?.context("the provider does not dial")
    }

    /// The next connection with TLS. One that was meant to hold a WebSocket is let go: the kit grants none, and the provider takes
    /// the straight way then.
    async fn accepted(&self) -> anyhow::Result<Wire> {
        let mut failed = None;
        for _ in 0..MOST_WEBSOCKETS {
            let socket = self.dialled().await?;
            match Wire::accept(socket, Arc::clone(&self.config)).await {
                Ok(wire) => return Ok(wire),
                Err(error) => failed = Some(error),
            }
        }
        Err(failed.context("no connection")?)
    }

    /// The next connection, whose hello is right; its epoch.
    pub(super) async fn hello(&self) -> anyhow::Result<(Wire, u64)> {
        let mut wire = self.accepted().await?;
        let hello = wire.expect(HELLO, 0).await?;
        ensure!(hello.number(1, 1)? == 1, "HELLO names another version than 1");
        ensure!(hello.number(2, 1)? == 1, "HELLO names another role than provider");
        ensure!(hello.field(3)? == self.member.token.as_bytes(), "HELLO shows another token");
        ensure!(hello.field(4)? == self.member.identity.public().bytes(), "HELLO shows other keys");
        let epoch = hello.number(5, 8)?;
        ensure!(epoch > 0, "an epoch of 0 means any");
        let proof: [u8; 64] = hello.field(6)?.try_into().context("a proof has 64 bytes")?;
        let identity = self.member.identity.public();
        let network = self.subject.authority.network;
        ensure!(
            Proof(proof).is_hello(identity, network, epoch, wire.exported()),
            "the proof is not over this connection"
        );
        Ok((wire, epoch))
    }

    /// The next connection, taken in.
    pub(super) async fn welcome(&self) -> anyhow::Result<(Wire, u64)> {
        self.welcome_with(60_000, &[]).await
    }

    pub(super) async fn welcome_with(
        &self,
        ping_interval_ms: u32,
        further: &[(u8, &[u8])],
    ) -> anyhow::Result<(Wire, u64)> {
        let (mut wire, epoch) = self.hello().await?;
        let mut list: Vec<(u8, Vec<u8>)> = vec![
            (1, vec![1]),
            (2, vec![7; 16]),
            (3, epoch.to_be_bytes().to_vec()),
            (4, unix_ms().to_be_bytes().to_vec()),
            (5, ping_interval_ms.to_be_bytes().to_vec()),
            (6, vec![2]),
        ];
        let numbers = [(7, BASE_MS), (8, CAP_MS), (9, 60_000), (10, 100), (11, WINDOW), (12, WINDOW)];
        list.extend(numbers.map(|(tag, number): (u8, u32)| (tag, number.to_be_bytes().to_vec())));
        list.extend(further.iter().map(|(tag, value)| (*tag, value.to_vec())));
        let list: Vec<(u8, &[u8])> = list.iter().map(|(tag, value)| (*tag, value.as_slice())).collect();
        wire.send(WELCOME, 0, &fields(&list)).await?;
        Ok((wire, epoch))
    }

    /// The provider's connection to the target.
    pub(super) async fn at_target(&self) -> anyhow::Result<TcpStream> {
        let accepted = timeout(SOON, self.target.accept()).await;
        Ok(accepted.context("the provider does not connect to the target")??.0)
    }

    pub(super) const fn network(&self) -> trust::NetworkId {
        self.subject.authority.network
    }
}
