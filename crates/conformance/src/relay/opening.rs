//! How streams come to be (§4).

use super::lab::{DONE, Open, SEAL, WINDOW, code};
use super::{Subject, Verdict};
use crate::wire::{CONTRACT, OPEN, OPENED, REFUSE, RESET, fields};
use anyhow::{bail, ensure};
use std::time::Duration;
use tokio::time::Instant;
use trust::{ClientId, ContractId, Role};

const MB: u64 = 1 << 20;

pub(super) async fn passes_opens(subject: &Subject) -> Verdict {
    let mut pair = subject.pair(MB).await?;
    let open = Open { epoch: pair.provider.epoch, ..pair.open() };
    let (stream, there) = pair.ask_through(&open).await?;
    ensure!(there.field(3)? == open.contract, "the contract is another at the provider");
    ensure!(there.field(4)? == pair.opener.member.client.bytes(), "the opener is another at the provider");
    let left_ms = there.number(5, 4)?;
    ensure!((1..=u64::from(open.deadline_ms)).contains(&left_ms), "{left_ms} ms are left of 10 s");
    ensure!(there.number(7, 4)? == u64::from(WINDOW), "the window is another at the provider");
    ensure!(there.field(8)? == SEAL, "the seal was changed");
    ensure!(!there.has(1)? && !there.has(2)?, "the provider is told what is meant for the relay");
    let opened = fields(&[(1, &123_456_u32.to_be_bytes()), (2, b"the answer's seal"), (77, b"of tomorrow")]);
    pair.provider.wire.send(OPENED, stream.provider, &opened).await?;
    let back = pair.opener.wire.expect(OPENED, stream.opener).await?;
    ensure!(back.number(1, 4)? == 123_456, "the window is another at the opener");
    ensure!(back.field(2)? == b"the answer's seal", "the seal was changed on its way back");
    // Numbers only grow towards a provider too.
    let (second, _) = pair.ask_through(&open).await?;
    ensure!(second.provider > stream.provider, "the relay's numbers do not grow");
    DONE
}

pub(super) async fn passes_refusals(subject: &Subject) -> Verdict {
    let mut pair = subject.pair(MB).await?;
    let (stream, _) = pair.ask_through(&pair.open()).await?;
    let refusal = fields(&[(1, &28_u16.to_be_bytes()), (2, b"at supper"), (3, &5_000_u32.to_be_bytes())]);
    pair.provider.wire.send(REFUSE, stream.provider, &refusal).await?;
    let back = pair.opener.wire.expect(REFUSE, stream.opener).await?;
    ensure!(back.code()? == 28, "code {} instead of 28", back.code()?);
    ensure!(back.field(2)? == b"at supper", "the cause was changed");
    ensure!(back.number(3, 4)? == 5_000, "the time was changed");
    DONE
}

pub(super) async fn keeps_deadlines(subject: &Subject) -> Verdict {
    let mut pair = subject.pair(MB).await?;
    let open = Open { deadline_ms: 600, ..pair.open() };
    let began = Instant::now();
    let (stream, _) = pair.ask_through(&open).await?;
    let back = pair.opener.wire.expect(REFUSE, stream.opener).await?;
    ensure!(back.code()? == 23, "code {} instead of 23", back.code()?);
    let took = began.elapsed();
    ensure!(took >= Duration::from_millis(500), "it was told after {took:?}, of 600 ms");
    pair.provider.wire.expect(RESET, stream.provider).await?;
    DONE
}

pub(super) async fn knows_who_is_here(subject: &Subject) -> Verdict {
    let mut pair = subject.pair(MB).await?;
    let elsewhere = Open { provider: ClientId::random().bytes(), ..pair.open() };
    let stale = Open { epoch: pair.provider.epoch + 1, ..pair.open() };
    for (open, expected) in [(elsewhere, 20), (stale, 29)] {
        let number = pair.ask(&open).await?;
        let told = pair.opener.wire.expect(REFUSE, number).await?.code()?;
        ensure!(told == expected, "code {told} instead of {expected}");
    }
    // An opener is no provider.
    let opener = Open { provider: pair.opener.member.client.bytes(), ..pair.open() };
    let number = pair.ask(&opener).await?;
    let told = pair.opener.wire.expect(REFUSE, number).await?.code()?;
    ensure!(told == 20, "an opener is taken for a provider: code {told}");
    DONE
}

pub(super) async fn checks_contracts(subject: &Subject) -> Verdict {
    let mut pair = subject.pair(MB).await?;
    let another = subject.authority.member(Role::Proxy)?;
    let (stolen, stolen_text) = subject.authority.contract(&another, MB)?;
    let (forged, forged_text) = subject.authority.contract(&pair.opener.member, MB)?;
    // Its bytes are changed under the signature.
    let middle = forged_text.len() / 2;
    let other = if forged_text.as_bytes()[middle] == b'A' { "B" } else { "A" };
    let forged_text = [&forged_text[..middle], other, &forged_text[middle + 1..]].concat();
    for text in [&stolen_text, &forged_text] {
        pair.opener.wire.send(CONTRACT, 0, &fields(&[(1, text.as_bytes())])).await?;
    }
    for contract in [stolen, forged, ContractId::random()] {
        let open = Open { contract: contract.bytes(), ..pair.open() };
        let number = pair.ask(&open).await?;
        let told = pair.opener.wire.expect(REFUSE, number).await?.code()?;
        ensure!(told == 21, "code {told} instead of 21");
    }
    DONE
}

pub(super) async fn refuses_a_used_number(subject: &Subject) -> Verdict {
    let mut pair = subject.pair(MB).await?;
    let open = pair.open();
    let number = pair.ask(&open).await?;
    pair.opener.wire.send(OPEN, number, &open.payload()).await?;
    loop {
        match pair.opener.wire.next().await? {
            Some(frame) if frame.kind == REFUSE && frame.stream == 0 => {
                ensure!(frame.code()? == 1, "code {} instead of 1", frame.code()?);
                return DONE;
            }
            Some(_) => {}
            None => bail!("the relay closed without REFUSE"),
        }
    }
}

pub(super) async fn passes_cancels(subject: &Subject) -> Verdict {
    let mut pair = subject.pair(MB).await?;
    let (stream, _) = pair.ask_through(&pair.open()).await?;
    pair.opener.wire.send(RESET, stream.opener, &code(26)).await?;
    let there = pair.provider.wire.expect(RESET, stream.provider).await?;
    ensure!(there.code()? == 26, "code {} instead of 26", there.code()?);
    // An answer that crosses it is nobody's fault.
    let opened = fields(&[(1, &WINDOW.to_be_bytes()), (2, SEAL)]);
    pair.provider.wire.send(OPENED, stream.provider, &opened).await?;
    pair.provider.wire.lives().await?;
    pair.opener.wire.lives().await?;
    DONE
}
