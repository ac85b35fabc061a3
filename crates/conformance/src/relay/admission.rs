//! Who is let in (§1, §3).

use super::lab::DONE;
use super::{Subject, Verdict};
use crate::wire::{PING, WELCOME, Wire};
use anyhow::ensure;
use clock::unix_ms;
use std::time::Duration;
use trust::{NetworkId, Role, Thumbprint};

/// A relay's clock may be wrong by so much.
const CLOCK_SLACK_MS: u64 = 120_000;

pub(super) async fn welcomes(subject: &Subject) -> Verdict {
    for role in [Role::Provider, Role::App, Role::Proxy] {
        let client = subject.enter(role).await?;
        let welcome = client.welcome;
        ensure!(welcome.number(1, 1)? == 1, "WELCOME names another version than 1");
        ensure!(welcome.field(2)?.len() == 16, "a relay's name has 16 bytes");
        ensure!(welcome.number(3, 8)? == client.epoch, "WELCOME names another epoch than HELLO");
        let skew = welcome.number(4, 8)?.abs_diff(unix_ms());
        ensure!(skew < CLOCK_SLACK_MS, "the relay's clock is {skew} ms off");
        ensure!(welcome.number(5, 4)? > 0 && welcome.number(6, 1)? > 0, "nobody is ever pinged");
        ensure!(welcome.number(7, 4)? <= welcome.number(8, 4)?, "the back-off's base is above its cap");
        ensure!(welcome.number(9, 4)? > 0 && welcome.number(10, 4)? > 0, "no stream could ever stand");
        let window = welcome.number(11, 4)?;
        ensure!(window >= 16_376, "a window of {window} bytes holds less than one frame");
        ensure!(window <= welcome.number(12, 4)?, "the window is above the greatest");
    }
    DONE
}

pub(super) async fn welcomes_inside_a_websocket(subject: &Subject) -> Verdict {
    let member = subject.authority.member(Role::App)?;
    let mut wire = Wire::dial(&subject.address, &subject.authority, b"http/1.1").await?;
    wire.upgrade(&subject.address).await?;
    let hello = wire.hello(&subject.authority, &member, 1).frame();
    let (first, second) = hello.split_at(100);
    wire.send_raw(first).await?;
    wire.send_raw(second).await?;
    wire.expect(WELCOME, 0).await?;
    wire.lives().await?;
    DONE
}

pub(super) async fn takes_a_hello_in_parts(subject: &Subject) -> Verdict {
    let member = subject.authority.member(Role::App)?;
    let mut wire = subject.dial().await?;
    let mut bytes = wire.hello(&subject.authority, &member, 1).frame();
    // And what comes right behind it is not lost.
    bytes.extend_from_slice(&crate::wire::frame(PING, 0, b"kit-ping"));
    for part in bytes.chunks(1) {
        wire.send_raw(part).await?;
    }
    wire.expect(WELCOME, 0).await?;
    let pong = wire.expect(crate::wire::PONG, 0).await?;
    ensure!(pong.payload == b"kit-ping", "the PING behind the hello came back changed");
    DONE
}

pub(super) async fn skips_unknown_fields(subject: &Subject) -> Verdict {
    let member = subject.authority.member(Role::App)?;
    let mut wire = subject.dial().await?;
    let mut hello = wire.hello(&subject.authority, &member, 1);
    hello.further = vec![(99, Vec::new()), (200, vec![7; 300])];
    wire.send_raw(&hello.frame()).await?;
    wire.expect(WELCOME, 0).await?;
    DONE
}

pub(super) async fn refuses_a_field_twice(subject: &Subject) -> Verdict {
    let member = subject.authority.member(Role::App)?;
    let mut wire = subject.dial().await?;
    let mut hello = wire.hello(&subject.authority, &member, 1);
    hello.further = vec![(5, 1_u64.to_be_bytes().to_vec())];
    wire.send_raw(&hello.frame()).await?;
    wire.refused(1).await?;
    DONE
}

pub(super) async fn refuses_another_version(subject: &Subject) -> Verdict {
    let member = subject.authority.member(Role::App)?;
    let mut wire = subject.dial().await?;
    let mut hello = wire.hello(&subject.authority, &member, 1);
    hello.version = 200;
    wire.send_raw(&hello.frame()).await?;
    wire.refused(2).await?;
    DONE
}

pub(super) async fn refuses_an_expired_token(subject: &Subject) -> Verdict {
    let member = subject.authority.member_with(Role::App, |claims| {
        claims.issued_at_s -= 7_200;
        claims.expires_at_s = claims.issued_at_s + 60;
    })?;
    let mut wire = subject.dial().await?;
    let hello = wire.hello(&subject.authority, &member, 1);
    wire.send_raw(&hello.frame()).await?;
    wire.refused(11).await?;
    DONE
}

pub(super) async fn refuses_anothers_token(subject: &Subject) -> Verdict {
    let authority = &subject.authority;
    let wrong = [
        authority.member_with(Role::App, |claims| claims.network = NetworkId([9; 32]))?,
        authority.member_with(Role::App, |claims| claims.role = Role::Provider)?,
        authority.member_with(Role::App, |claims| claims.thumbprint = Thumbprint([9; 32]))?,
    ];
    for member in wrong {
        let mut wire = subject.dial().await?;
        let hello = wire.hello(authority, &member, 1);
        wire.send_raw(&hello.frame()).await?;
        wire.refused(10).await?;
    }
    DONE
}

pub(super) async fn refuses_a_replayed_proof(subject: &Subject) -> Verdict {
    let member = subject.authority.member(Role::App)?;
    let other = subject.dial().await?;
    let overheard = other.hello(&subject.authority, &member, 1);
    let mut wire = subject.dial().await?;
    wire.send_raw(&overheard.frame()).await?;
    wire.refused(14).await?;
    DONE
}

pub(super) async fn supersedes(subject: &Subject) -> Verdict {
    let member = subject.authority.member(Role::Provider)?;
    let mut wire = subject.dial().await?;
    wire.send_raw(&wire.hello(&subject.authority, &member, 5).frame()).await?;
    wire.expect(WELCOME, 0).await?;
    let mut newer = subject.enter_as(member, 6).await?;
    wire.refused(13).await?;
    newer.wire.lives().await?;
    DONE
}

pub(super) async fn refuses_an_older_start(subject: &Subject) -> Verdict {
    let member = subject.authority.member(Role::Provider)?;
    let mut current = subject.enter_as(member, 6).await?;
    let mut wire = subject.dial().await?;
    wire.send_raw(&wire.hello(&subject.authority, &current.member, 5).frame()).await?;
    wire.refused(13).await?;
    current.wire.lives().await?;
    DONE
}

pub(super) async fn closes_over_silence(subject: &Subject) -> Verdict {
    let mut wire = subject.dial().await?;
    wire.closed_within(Duration::from_secs(10)).await?;
    DONE
}
