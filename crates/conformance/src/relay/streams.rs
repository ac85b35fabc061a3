//! Bytes, credit and ends (§5).

use super::lab::{DONE, Pair, Stream, WINDOW, code};
use super::{Subject, Verdict};
use crate::wire::{CONTRACT, CREDIT, DATA, FIN, REFUSE, RESET, fields};
use anyhow::ensure;
use trust::ContractId;

const MB: u64 = 1 << 20;
/// The tag alone: the end of a direction.
const SEALED_END: &[u8] = &[5; 16];

impl Pair {
    /// DATA from the opener must come out at the provider as it is.
    async fn there(&mut self, stream: Stream, payload: &[u8]) -> anyhow::Result<()> {
        self.opener.wire.send(DATA, stream.opener, payload).await?;
        let came = self.provider.wire.expect(DATA, stream.provider).await?;
        ensure!(came.payload == payload, "{} bytes were changed on their way there", payload.len());
        Ok(())
    }

    async fn back(&mut self, stream: Stream, payload: &[u8]) -> anyhow::Result<()> {
        self.provider.wire.send(DATA, stream.provider, payload).await?;
        let came = self.opener.wire.expect(DATA, stream.opener).await?;
        ensure!(came.payload == payload, "{} bytes were changed on their way back", payload.len());
        Ok(())
    }

    /// Both are still connected, and nothing else is on its way to them.
    async fn live(&mut self) -> anyhow::Result<()> {
        self.opener.wire.lives().await?;
        self.provider.wire.lives().await
    }

    async fn both_reset(&mut self, stream: Stream, expected: u64) -> anyhow::Result<()> {
        let here = self.opener.wire.expect(RESET, stream.opener).await?.code()?;
        let there = self.provider.wire.expect(RESET, stream.provider).await?.code()?;
        ensure!((here, there) == (expected, expected), "codes {here} and {there} instead of {expected}");
        Ok(())
    }
}

pub(super) async fn passes_data(subject: &Subject) -> Verdict {
    let mut pair = subject.pair(MB).await?;
    let (first, second) = (pair.stream(WINDOW, WINDOW).await?, pair.stream(WINDOW, WINDOW).await?);
    for length in [17, 18, 1_000, 4_096, 16_375, 16_376] {
        let payload: Vec<u8> = (0..length).map(|at: usize| (at % 251) as u8).collect();
        for stream in [first, second] {
            pair.there(stream, &payload).await?;
            pair.back(stream, &payload).await?;
        }
    }
    DONE
}

pub(super) async fn counts_credit(subject: &Subject) -> Verdict {
    let mut pair = subject.pair(MB).await?;
    // Tags count: two messages of 100 bytes fill it.
    let stream = pair.stream(200, WINDOW).await?;
    pair.there(stream, &[1; 100]).await?;
    pair.there(stream, &[2; 100]).await?;
    pair.provider.wire.send(CREDIT, stream.provider, &50_u32.to_be_bytes()).await?;
    let credit = pair.opener.wire.expect(CREDIT, stream.opener).await?;
    ensure!(credit.payload == 50_u32.to_be_bytes(), "another credit came than was granted");
    pair.there(stream, &[3; 50]).await?;
    pair.opener.wire.send(DATA, stream.opener, &[4; 17]).await?;
    pair.both_reset(stream, 25).await?;
    // The provider's side is counted too.
    let stream = pair.stream(WINDOW, 100).await?;
    pair.back(stream, &[1; 100]).await?;
    pair.provider.wire.send(DATA, stream.provider, &[4; 17]).await?;
    pair.both_reset(stream, 25).await?;
    DONE
}

pub(super) async fn lets_end_without_credit(subject: &Subject) -> Verdict {
    let mut pair = subject.pair(MB).await?;
    let stream = pair.stream(100, WINDOW).await?;
    pair.there(stream, &[1; 100]).await?;
    pair.there(stream, SEALED_END).await?;
    pair.opener.wire.send(FIN, stream.opener, &[]).await?;
    pair.provider.wire.expect(FIN, stream.provider).await?;
    DONE
}

pub(super) async fn passes_fins(subject: &Subject) -> Verdict {
    let mut pair = subject.pair(MB).await?;
    let stream = pair.stream(WINDOW, WINDOW).await?;
    pair.there(stream, SEALED_END).await?;
    pair.opener.wire.send(FIN, stream.opener, &[]).await?;
    pair.provider.wire.expect(FIN, stream.provider).await?;
    // The other direction goes on.
    pair.back(stream, &[1; 500]).await?;
    pair.back(stream, SEALED_END).await?;
    pair.provider.wire.send(FIN, stream.provider, &[]).await?;
    pair.opener.wire.expect(FIN, stream.opener).await?;
    pair.live().await?;
    DONE
}

pub(super) async fn passes_resets(subject: &Subject) -> Verdict {
    let mut pair = subject.pair(MB).await?;
    let stream = pair.stream(WINDOW, WINDOW).await?;
    let reset = fields(&[(1, &45_u16.to_be_bytes()), (2, &9_000_u32.to_be_bytes())]);
    pair.provider.wire.send(RESET, stream.provider, &reset).await?;
    let came = pair.opener.wire.expect(RESET, stream.opener).await?;
    ensure!((came.code()?, came.number(2, 4)?) == (45, 9_000), "code or time were changed");
    // It is over there too: what the opener still sends goes nowhere.
    pair.opener.wire.send(DATA, stream.opener, &[1; 100]).await?;
    pair.live().await?;
    let stream = pair.stream(WINDOW, WINDOW).await?;
    pair.opener.wire.send(RESET, stream.opener, &code(26)).await?;
    ensure!(pair.provider.wire.expect(RESET, stream.provider).await?.code()? == 26, "the code was changed");
    DONE
}

pub(super) async fn spends_contracts(subject: &Subject) -> Verdict {
    let mut pair = subject.pair(1_000).await?;
    let stream = pair.stream(WINDOW, WINDOW).await?;
    pair.there(stream, &[1; 600]).await?;
    // Both directions count together.
    pair.back(stream, &[1; 400]).await?;
    pair.opener.wire.send(DATA, stream.opener, &[1; 17]).await?;
    pair.both_reset(stream, 22).await?;
    let open = pair.open();
    let number = pair.ask(&open).await?;
    let told = pair.opener.wire.expect(REFUSE, number).await?.code()?;
    ensure!(told == 22, "an OPEN on it is answered with {told} instead of 22");
    DONE
}

pub(super) async fn goes_on_with_what_follows(subject: &Subject) -> Verdict {
    let mut pair = subject.pair(1_000).await?;
    let first: ContractId = pair.contract;
    let (_, text) = subject.authority.contract(&pair.opener.member, 100_000)?;
    let follows = fields(&[(1, text.as_bytes()), (2, &first.bytes())]);
    pair.opener.wire.send(CONTRACT, 0, &follows).await?;
    let stream = pair.stream(WINDOW, WINDOW).await?;
    for _ in 0..10 {
        pair.there(stream, &[1; 5_000]).await?;
        pair.back(stream, &[2; 4_000]).await?;
    }
    DONE
}

pub(super) async fn tells_of_a_provider_that_leaves(subject: &Subject) -> Verdict {
    let mut pair = subject.pair(MB).await?;
    let stands = pair.stream(WINDOW, WINDOW).await?;
    let (asked, _) = pair.ask_through(&pair.open()).await?;
    let Pair { provider, mut opener, .. } = pair;
    drop(provider);
    let mut told = Vec::new();
    for _ in 0..2 {
        let frame = opener.wire.next().await?;
        let frame = frame.ok_or_else(|| anyhow::anyhow!("the opener was closed"))?;
        told.push((frame.stream, frame.kind, frame.code()?));
    }
    told.sort_unstable();
    let expected = [(stands.opener, RESET, 20), (asked.opener, REFUSE, 20)];
    ensure!(told == expected, "told (stream, type, code) {told:?} instead of {expected:?}");
    DONE
}

pub(super) async fn tells_of_an_opener_that_leaves(subject: &Subject) -> Verdict {
    let mut pair = subject.pair(MB).await?;
    let stream = pair.stream(WINDOW, WINDOW).await?;
    let Pair { mut provider, opener, .. } = pair;
    drop(opener);
    provider.wire.expect(RESET, stream.provider).await?;
    provider.wire.lives().await?;
    DONE
}

pub(super) async fn forgives_what_comes_late(subject: &Subject) -> Verdict {
    let mut pair = subject.pair(MB).await?;
    for number in [77, u32::MAX] {
        pair.provider.wire.send(DATA, number, &[1; 100]).await?;
        pair.provider.wire.send(CREDIT, number, &1_u32.to_be_bytes()).await?;
        pair.provider.wire.send(FIN, number, &[]).await?;
        pair.provider.wire.send(RESET, number, &code(26)).await?;
        pair.opener.wire.send(RESET, number, &code(26)).await?;
        pair.opener.wire.send(FIN, number, &[]).await?;
    }
    pair.live().await?;
    DONE
}
