//! Frames of a client that is in (§2, §3).

use super::lab::{DONE, Open, code};
use super::{Subject, Verdict};
use crate::wire::{OPEN, PING, PONG, REFUSE, frame};
use anyhow::ensure;
use std::time::Duration;
use trust::Role;

pub(super) async fn echoes_pings(subject: &Subject) -> Verdict {
    let mut client = subject.enter(Role::App).await?;
    for bytes in [[0_u8; 8], [0xFF; 8], *b"12345678"] {
        client.wire.send(PING, 0, &bytes).await?;
        ensure!(client.wire.expect(PONG, 0).await?.payload == bytes, "PONG brings other bytes back");
    }
    DONE
}

pub(super) async fn skips_unknown_frames(subject: &Subject) -> Verdict {
    let mut client = subject.enter(Role::App).await?;
    for kind in [0x80, 0xC3, 0xFF] {
        client.wire.send(kind, 9, &[1; 16_376]).await?;
        client.wire.send(kind, 0, &[]).await?;
    }
    client.wire.lives().await?;
    DONE
}

pub(super) async fn refuses_unknown_frames(subject: &Subject) -> Verdict {
    for kind in [0x00, 0x08, 0x17, 0x7F] {
        let mut client = subject.enter(Role::App).await?;
        client.wire.send(kind, 0, &[]).await?;
        client.wire.refused(1).await?;
    }
    DONE
}

pub(super) async fn refuses_long_frames(subject: &Subject) -> Verdict {
    for length in [16_377_u16, u16::MAX] {
        let mut client = subject.enter(Role::App).await?;
        // The header is enough: nobody waits for the rest.
        let mut header = frame(0x80, 0, &[]);
        header[..2].copy_from_slice(&length.to_be_bytes());
        client.wire.send_raw(&header).await?;
        client.wire.refused(1).await?;
    }
    DONE
}

pub(super) async fn ignores_flags(subject: &Subject) -> Verdict {
    let mut client = subject.enter(Role::App).await?;
    let mut ping = frame(PING, 0, b"kit-ping");
    ping[3] = 0xFF;
    client.wire.send_raw(&ping).await?;
    client.wire.expect(PONG, 0).await?;
    DONE
}

pub(super) async fn refuses_an_open_of_a_provider(subject: &Subject) -> Verdict {
    let mut client = subject.enter(Role::Provider).await?;
    let open = Open { provider: [1; 16], epoch: 0, contract: [2; 16], deadline_ms: 1_000, window: 100_000 };
    client.wire.send(OPEN, 1, &open.payload()).await?;
    client.wire.refused(1).await?;
    DONE
}

pub(super) async fn lets_leave(subject: &Subject) -> Verdict {
    let mut client = subject.enter(Role::Provider).await?;
    client.wire.send(REFUSE, 0, &code(5)).await?;
    client.wire.closed_within(Duration::from_secs(5)).await?;
    // The same start may come again.
    subject.enter_as(client.member, client.epoch).await?;
    DONE
}
