//! How a provider comes, comes back, and stays away (§1, §3).

use super::carrying::Opener;
use super::desk::{CAP_MS, Desk};
use crate::relay::Verdict;
use crate::wire::{DRAIN, REFUSE, RESET, fields};
use anyhow::{Context, ensure};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::time::Instant;

/// Besides the pace, a busy machine may take so long.
const SLACK: Duration = Duration::from_millis(1_500);
/// Who stays away does not dial within this time: many times the greatest back-off of these checks.
const AWAY: Duration = Duration::from_secs(2);
/// Codes that end a connection and are not final; one of tomorrow among them.
const PASSING: [u16; 8] = [1, 3, 4, 5, 6, 11, 19, 20];
const FINAL: [u16; 5] = [2, 10, 12, 13, 14];
const DONE: Verdict = Ok(Ok(()));

fn refusal(code: u16, retry_after_ms: Option<u32>) -> Vec<u8> {
    let (code, retry_after) = (code.to_be_bytes(), retry_after_ms.unwrap_or_default().to_be_bytes());
    let mut list: Vec<(u8, &[u8])> = vec![(1, &code), (2, b"a check of the kit")];
    if retry_after_ms.is_some() {
        list.push((3, &retry_after));
    }
    fields(&list)
}

pub(super) async fn says_hello(desk: &mut Desk<'_>) -> Verdict {
    let (mut wire, epoch) = desk.welcome().await?;
    wire.lives().await?;
    // The same start says the same epoch.
    drop(wire);
    let (_, again) = desk.welcome().await?;
    ensure!(again == epoch, "the same start shows another epoch");
    DONE
}

pub(super) async fn skips_what_it_does_not_know(desk: &mut Desk<'_>) -> Verdict {
    let (mut wire, _) = desk.welcome_with(60_000, &[(99, b""), (200, b"of tomorrow")]).await?;
    for kind in [0x80, 0xFF] {
        wire.send(kind, 3, &[1; 16_376]).await?;
    }
    wire.lives().await?;
    DONE
}

pub(super) async fn gives_up_a_silent_relay(desk: &mut Desk<'_>) -> Verdict {
    let (mut wire, _) = desk.welcome_with(300, &[]).await?;
    let began = Instant::now();
    // Its PINGs come, and nobody answers.
    let closing = wire.closed_within(Duration::from_secs(5)).await;
    closing.context("a relay that is silent for many intervals is not given up")?;
    let took = began.elapsed();
    ensure!(took >= Duration::from_millis(480), "given up after {took:?}, of 3 × 300 ms less 20 %");
    desk.welcome().await?;
    DONE
}

pub(super) async fn comes_back(desk: &mut Desk<'_>) -> Verdict {
    let most = Duration::from_millis(u64::from(CAP_MS)) + SLACK;
    for code in PASSING {
        for after_welcome in [true, false] {
            let (mut wire, _) = if after_welcome { desk.welcome().await? } else { desk.hello().await? };
            wire.send(REFUSE, 0, &refusal(code, None)).await?;
            drop(wire);
            let began = Instant::now();
            let (mut again, _) = desk.welcome().await.with_context(|| format!("after code {code}"))?;
            let took = began.elapsed();
            ensure!(
                took <= most,
                "after code {code} it came back after {took:?}, and the cap is {CAP_MS} ms"
            );
            again.send(REFUSE, 0, &refusal(3, Some(1))).await?;
        }
    }
    DONE
}

pub(super) async fn comes_back_after_faults(desk: &mut Desk<'_>) -> Verdict {
    drop(desk.welcome().await?);
    let (mut wire, _) = desk.welcome().await?;
    wire.send(0x7F, 0, &[]).await?;
    wire.closed_within(Duration::from_secs(5)).await.context("an unknown frame below 0x80")?;
    let (mut wire, _) = desk.welcome().await?;
    wire.send_raw(&[0xFF, 0xFF, 0x80, 0, 0, 0, 0, 0]).await?;
    wire.closed_within(Duration::from_secs(5)).await.context("a frame longer than any")?;
    desk.welcome().await?;
    DONE
}

pub(super) async fn keeps_a_wait(desk: &mut Desk<'_>) -> Verdict {
    let (mut wire, _) = desk.welcome().await?;
    wire.send(REFUSE, 0, &refusal(3, Some(1_500))).await?;
    drop(wire);
    let began = Instant::now();
    let socket = desk.dialled().await?;
    let took = began.elapsed();
    ensure!(took >= Duration::from_millis(1_450), "it came after {took:?}, and was told 1,500 ms");
    ensure!(took <= Duration::from_millis(1_800) + SLACK, "it came after {took:?}, and was told 1,500 ms");
    drop(socket);
    DONE
}

pub(super) async fn keeps_a_wait_before_tls(desk: &mut Desk<'_>) -> Verdict {
    // Its pace is known by then.
    drop(desk.welcome().await?);
    let mut socket = desk.dialled().await?;
    socket.write_all(b"holdfast-wait 00001500\n").await?;
    // Read before the end of the connection is.
    tokio::time::sleep(Duration::from_millis(100)).await;
    drop(socket);
    let began = Instant::now();
    desk.dialled().await?;
    let took = began.elapsed();
    ensure!(took >= Duration::from_millis(1_350), "it came after {took:?}, and was told 1,500 ms");
    DONE
}

pub(super) async fn stays_away(desk: &mut Desk<'_>) -> Verdict {
    for (turn, code) in FINAL.into_iter().enumerate() {
        if turn > 0 {
            desk.restart().await?;
        }
        let (mut wire, _) = if turn % 2 == 0 { desk.welcome().await? } else { desk.hello().await? };
        wire.send(REFUSE, 0, &refusal(code, None)).await?;
        drop(wire);
        let came = desk.dialled_within(AWAY).await?;
        ensure!(came.is_none(), "it dials again after code {code}, which is final");
    }
    DONE
}

pub(super) async fn drains(desk: &mut Desk<'_>) -> Verdict {
    let (wire, epoch) = desk.welcome().await?;
    let mut opener = Opener::new(desk, wire, epoch);
    let mut stream = opener.open(desk).await?;
    let mut target = desk.at_target().await?;
    stream.accepted(&mut opener).await?;
    let times = [(1, 60_000_u32.to_be_bytes()), (2, 300_u32.to_be_bytes())];
    let times: Vec<(u8, &[u8])> = times.iter().map(|(tag, value)| (*tag, &value[..])).collect();
    opener.wire.send(DRAIN, 0, &fields(&times)).await?;
    let (_second, again) = desk.welcome().await.context("after DRAIN")?;
    ensure!(again == epoch, "it came back under another epoch");
    stream.there_and_back(&mut opener, &mut target, b"the old stream goes on").await?;
    opener.wire.send(RESET, stream.id, &fields(&[(1, &26_u16.to_be_bytes())])).await?;
    DONE
}
