//! Streams through a provider (§4–§6).

use super::desk::{Desk, WINDOW};
use crate::relay::Verdict;
use crate::wire::{CREDIT, DATA, FIN, Frame, OPEN, OPENED, REFUSE, RESET, SOON, Wire, fields};
use anyhow::{Context, bail, ensure};
use clock::unix_ms;
use link::seal::{Answer, Family, Host, Initiator, Parties, Request, Sealer, Target, Unsealer};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use trust::{ClientId, ContractId, Identity};

const DONE: Verdict = Ok(Ok(()));
/// In the time in which nothing is to come.
const QUIET: Duration = Duration::from_millis(700);

/// An opener at a relay, both of them the kit.
pub(super) struct Opener {
    pub(super) wire: Wire,
    epoch: u64,
    client: ClientId,
    contract: ContractId,
    provider_key: [u8; 32],
    next: u32,
}

/// One stream at the provider.
pub(super) struct Stream {
    pub(super) id: u32,
    initiator: Option<Initiator>,
    sealed: Option<(Sealer, Unsealer)>,
    /// What the provider has granted.
    credit: u64,
}

/// How an OPEN differs from the usual.
struct Asked {
    target: SocketAddr,
    time_ms: u64,
    epoch: u64,
    key: [u8; 32],
    window: u32,
}

impl Opener {
    pub(super) fn new(desk: &Desk<'_>, wire: Wire, epoch: u64) -> Self {
        let provider_key = desk.member.identity.public().seal_key();
        let (client, contract) = (ClientId::random(), ContractId::random());
        Self { wire, epoch, client, contract, provider_key, next: 1 }
    }

    fn asked(&self, desk: &Desk<'_>) -> anyhow::Result<Asked> {
        let target = desk.target.local_addr()?;
        Ok(Asked { target, time_ms: unix_ms(), epoch: self.epoch, key: self.provider_key, window: WINDOW })
    }

    pub(super) async fn open(&mut self, desk: &Desk<'_>) -> anyhow::Result<Stream> {
        let asked = self.asked(desk)?;
        Ok(self.ask(desk, &asked).await?.0)
    }

    /// Sends an OPEN; and its seal.
    async fn ask(&mut self, desk: &Desk<'_>, asked: &Asked) -> anyhow::Result<(Stream, Vec<u8>)> {
        let parties = Parties {
            network: desk.network().0,
            provider: desk.member.client.0,
            opener: self.client.0,
            contract: self.contract.0,
        };
        let request = Request {
            time_ms: asked.time_ms,
            provider_epoch: asked.epoch,
            target: Target { host: Host::Address(asked.target.ip()), port: asked.target.port() },
            family: Family::Any,
        };
        let secret: [u8; 32] = Identity::generate()?.seal_secret().try_into().context("a key of 32 bytes")?;
        let (initiator, seal) = Initiator::new(&secret, &asked.key, &parties, &request)?;
        let id = self.send_open(&seal, asked.window).await?;
        Ok((Stream { id, initiator: Some(initiator), sealed: None, credit: 0 }, seal))
    }

    async fn send_open(&mut self, seal: &[u8], window: u32) -> anyhow::Result<u32> {
        let id = self.next;
        self.next += 1;
        let open = fields(&[
            (3, &self.contract.bytes()),
            (4, &self.client.bytes()),
            (5, &5_000_u32.to_be_bytes()),
            (7, &window.to_be_bytes()),
            (8, seal),
            (88, b"of tomorrow"),
        ]);
        self.wire.send(OPEN, id, &open).await?;
        Ok(id)
    }

    async fn refused(&mut self, id: u32, code: u64) -> anyhow::Result<()> {
        let told = self.wire.expect(REFUSE, id).await?.code()?;
        ensure!(told == code, "code {told} instead of {code}");
        Ok(())
    }

    async fn was_reset(&mut self, id: u32, code: Option<u64>) -> anyhow::Result<()> {
        loop {
            match self.wire.next().await? {
                Some(frame) if frame.kind == RESET && frame.stream == id => {
                    let told = frame.code()?;
                    ensure!(
                        code.is_none_or(|code| code == told),
                        "RESET with code {told} instead of {code:?}"
                    );
                    return Ok(());
                }
                // What was on its way before.
                Some(frame) if matches!(frame.kind, DATA | CREDIT) && frame.stream == id => {}
                other => bail!("expected RESET on stream {id}, got {other:?}"),
            }
        }
    }
}

impl Stream {
    /// The provider's answer.
    async fn answered(&mut self, opener: &mut Opener) -> anyhow::Result<Answer> {
        let opened = opener.wire.expect(OPENED, self.id).await?;
        self.credit = opened.number(1, 4)?;
        let initiator = self.initiator.take().context("answered twice")?;
        let (answer, seal, open) = initiator.finish(opened.field(2)?)?;
        self.sealed = Some((seal, open));
        Ok(answer)
    }

    pub(super) async fn accepted(&mut self, opener: &mut Opener) -> anyhow::Result<()> {
        match self.answered(opener).await? {
            Answer::Connected(address) => {
                ensure!(address.is_loopback(), "it reached {address} instead of 127.0.0.1");
                Ok(())
            }
            Answer::Failed { code, cause } => {
                bail!("it does not reach the target: {code}: {cause} (is it allowed to?)")
            }
        }
    }

    async fn send(&mut self, opener: &mut Opener, plain: &[u8]) -> anyhow::Result<()> {
        let (seal, _) = self.sealed.as_mut().context("not open")?;
        let mut payload = Vec::new();
        seal.seal(plain, &mut payload)?;
        opener.wire.send(DATA, self.id, &payload).await
    }

    fn read(&mut self, frame: &Frame) -> anyhow::Result<Vec<u8>> {
        let (_, open) = self.sealed.as_mut().context("not open")?;
        Ok(open.open(&mut frame.payload.clone())?.to_vec())
    }

    /// The next message; CREDIT on the way is noted.
    async fn receive(&mut self, opener: &mut Opener) -> anyhow::Result<Vec<u8>> {
        loop {
            match opener.wire.next().await? {
                Some(frame) if frame.kind == CREDIT => self.credit += granted(&frame)?,
                Some(frame) if (frame.kind, frame.stream) == (DATA, self.id) => return self.read(&frame),
                other => bail!("expected DATA on stream {}, got {other:?}", self.id),
            }
        }
    }

    pub(super) async fn there_and_back(
        &mut self,
        opener: &mut Opener,
        target: &mut TcpStream,
        bytes: &[u8],
    ) -> anyhow::Result<()> {
        self.send(opener, bytes).await?;
        let mut there = vec![0; bytes.len()];
        timeout(SOON, target.read_exact(&mut there)).await.context("nothing comes at the target")??;
        ensure!(there == bytes, "other bytes came at the target");
        target.write_all(bytes).await?;
        let mut back = Vec::new();
        while back.len() < bytes.len() {
            back.extend(self.receive(opener).await?);
        }
        ensure!(back == bytes, "other bytes came back");
        Ok(())
    }
}

fn granted(frame: &Frame) -> anyhow::Result<u64> {
    let bytes: [u8; 4] = frame.payload[..].try_into().context("a CREDIT of another length than 4")?;
    Ok(u64::from(u32::from_be_bytes(bytes)))
}

/// A stream that stands, and its target's side.
async fn stream(desk: &Desk<'_>, window: u32) -> anyhow::Result<(Opener, Stream, TcpStream)> {
    let (wire, epoch) = desk.welcome().await?;
    let mut opener = Opener::new(desk, wire, epoch);
    let asked = Asked { window, ..opener.asked(desk)? };
    let (mut stream, _) = opener.ask(desk, &asked).await?;
    let target = desk.at_target().await?;
    stream.accepted(&mut opener).await?;
    Ok((opener, stream, target))
}

pub(super) async fn carries(desk: &mut Desk<'_>) -> Verdict {
    let (mut opener, mut stream, mut target) = stream(desk, WINDOW).await?;
    for length in [1, 100, 16_360] {
        let bytes: Vec<u8> = (0..length).map(|at: usize| (at % 251) as u8).collect();
        stream.there_and_back(&mut opener, &mut target, &bytes).await?;
    }
    DONE
}

pub(super) async fn tells_of_refusals(desk: &mut Desk<'_>) -> Verdict {
    let (wire, epoch) = desk.welcome().await?;
    let mut opener = Opener::new(desk, wire, epoch);
    let asked = opener.asked(desk)?;
    // The place that it may reach, and where nobody listens now.
    desk.target = TcpListener::bind("127.0.0.1:0").await?;
    let (mut stream, _) = opener.ask(desk, &asked).await?;
    match stream.answered(&mut opener).await? {
        Answer::Failed { code, .. } => ensure!(code.number() == 40, "code {code} instead of target_refused"),
        Answer::Connected(_) => bail!("it says that it is connected, and nobody listens there"),
    }
    opener.wire.expect(FIN, stream.id).await?;
    opener.wire.lives().await?;
    DONE
}

pub(super) async fn refuses_replays(desk: &mut Desk<'_>) -> Verdict {
    let (wire, epoch) = desk.welcome().await?;
    let mut opener = Opener::new(desk, wire, epoch);
    let asked = opener.asked(desk)?;
    let (mut stream, seal) = opener.ask(desk, &asked).await?;
    desk.at_target().await?;
    stream.accepted(&mut opener).await?;
    let again = opener.send_open(&seal, WINDOW).await?;
    loop {
        match opener.wire.next().await? {
            // The target has left the first meanwhile.
            Some(frame) if frame.stream == stream.id => {}
            Some(frame) if (frame.kind, frame.stream) == (REFUSE, again) => {
                ensure!(frame.code()? == 30, "code {} instead of replayed", frame.code()?);
                break;
            }
            other => bail!("expected REFUSE replayed, got {other:?}"),
        }
    }
    // What was seen is remembered by the start, not by the connection.
    opener.wire.send(REFUSE, 0, &fields(&[(1, &4_u16.to_be_bytes())])).await?;
    (opener.wire, _) = desk.welcome().await?;
    let later = opener.send_open(&seal, WINDOW).await?;
    opener.refused(later, 30).await?;
    DONE
}

pub(super) async fn refuses_what_is_not_meant(desk: &mut Desk<'_>) -> Verdict {
    let (wire, epoch) = desk.welcome().await?;
    let mut opener = Opener::new(desk, wire, epoch);
    for (skewed, code) in [(unix_ms() - 200_000, 31), (unix_ms() + 200_000, 31)] {
        let asked = Asked { time_ms: skewed, ..opener.asked(desk)? };
        let (stream, _) = opener.ask(desk, &asked).await?;
        opener.refused(stream.id, code).await?;
    }
    let stale = Asked { epoch: epoch + 1, ..opener.asked(desk)? };
    let (stream, _) = opener.ask(desk, &stale).await?;
    opener.refused(stream.id, 29).await?;
    let other_key = Identity::generate()?.public().seal_key();
    let anothers = Asked { key: other_key, ..opener.asked(desk)? };
    let (stream, _) = opener.ask(desk, &anothers).await?;
    opener.refused(stream.id, 32).await?;
    let nonsense = opener.send_open(&[9; 100], WINDOW).await?;
    opener.refused(nonsense, 32).await?;
    DONE
}

pub(super) async fn keeps_to_credit(desk: &mut Desk<'_>) -> Verdict {
    const SMALL: u32 = 40_000;
    let (mut opener, mut stream, mut target) = stream(desk, SMALL).await?;
    tokio::spawn(async move { while target.write_all(&[7; 16_384]).await.is_ok() {} });
    let mut most = u64::from(SMALL);
    let mut came = 0;
    for grant in [20_000_u32, 50, 100_000, 0] {
        while let Some(Some(frame)) = opener.wire.next_within(QUIET).await? {
            ensure!((frame.kind, frame.stream) == (DATA, stream.id), "got {frame:?}");
            came += frame.payload.len() as u64;
            ensure!(came <= most, "{came} bytes came, and {most} were granted");
            stream.read(&frame)?;
        }
        // A message needs a tag: what is left may be too little for one.
        ensure!(came + 64 >= most, "{came} bytes came of {most} that were granted");
        opener.wire.send(CREDIT, stream.id, &grant.to_be_bytes()).await?;
        most += u64::from(grant);
    }
    DONE
}

pub(super) async fn counts_credit(desk: &mut Desk<'_>) -> Verdict {
    let (mut opener, mut stream, _target) = stream(desk, WINDOW).await?;
    // The target takes nothing: at some time its end of the way is full, and nothing more is granted.
    loop {
        while stream.credit >= 10_016 {
            stream.send(&mut opener, &[1; 10_000]).await?;
            stream.credit -= 10_016;
        }
        match opener.wire.next_within(QUIET).await? {
            Some(Some(frame)) if frame.kind == CREDIT => stream.credit += granted(&frame)?,
            None => break,
            other => bail!("expected CREDIT, got {other:?}"),
        }
    }
    let beyond = usize::try_from(stream.credit)? + 1;
    stream.send(&mut opener, &vec![2; beyond]).await?;
    opener.was_reset(stream.id, Some(25)).await?;
    DONE
}

pub(super) async fn passes_half_close(desk: &mut Desk<'_>) -> Verdict {
    let (mut opener, mut stream, mut target) = stream(desk, WINDOW).await?;
    stream.send(&mut opener, b"the last").await?;
    stream.send(&mut opener, b"").await?;
    opener.wire.send(FIN, stream.id, &[]).await?;
    let mut there = Vec::new();
    timeout(SOON, target.read_to_end(&mut there)).await.context("the end does not reach the target")??;
    ensure!(there == b"the last", "other bytes came at the target");
    target.write_all(b"an answer").await?;
    ensure!(stream.receive(&mut opener).await? == b"an answer", "the other direction does not go on");
    DONE
}

pub(super) async fn tells_of_the_end(desk: &mut Desk<'_>) -> Verdict {
    let (mut opener, mut stream, mut target) = stream(desk, WINDOW).await?;
    target.write_all(b"goodbye").await?;
    target.shutdown().await?;
    ensure!(stream.receive(&mut opener).await? == b"goodbye", "other bytes came");
    ensure!(stream.receive(&mut opener).await?.is_empty(), "the end is not told under the seal");
    opener.wire.expect(FIN, stream.id).await?;
    // The other direction goes on.
    stream.send(&mut opener, b"and to you").await?;
    let mut there = [0; 10];
    timeout(SOON, target.read_exact(&mut there)).await.context("nothing comes at the target")??;
    DONE
}

pub(super) async fn passes_resets(desk: &mut Desk<'_>) -> Verdict {
    for cut_by_fin in [false, true] {
        let (mut opener, stream, mut target) = stream(desk, WINDOW).await?;
        let (kind, payload) =
            if cut_by_fin { (FIN, Vec::new()) } else { (RESET, fields(&[(1, &26_u16.to_be_bytes())])) };
        opener.wire.send(kind, stream.id, &payload).await?;
        // Its connection is gone in both directions: writing fails soon.
        let gone = async { while target.write_all(&[1; 1_024]).await.is_ok() {} };
        let what = if cut_by_fin { "FIN without the sealed end" } else { "RESET" };
        timeout(SOON, gone).await.with_context(|| format!("after {what} the target's connection stands"))?;
        opener.wire.lives().await.ok();
        drop(opener);
    }
    DONE
}

pub(super) async fn refuses_changed_messages(desk: &mut Desk<'_>) -> Verdict {
    let (mut opener, stream, _target) = stream(desk, WINDOW).await?;
    opener.wire.send(DATA, stream.id, &[3; 60]).await?;
    opener.was_reset(stream.id, Some(32)).await?;
    DONE
}
