//! The checks of a provider. To it, the kit is the relay, the openers and the targets.
//!
//! A provider is started anew for each check, with the keys and the token of a client that was made for it, and is stopped
//! after it. It must be allowed to reach the targets that the kit names; they listen on 127.0.0.1.

mod carrying;
mod coming;
mod desk;

use crate::authority::Authority;
use crate::relay::{Skip, Verdict};
use crate::report::{Check, Report, Result};
use anyhow::Context;
use desk::Desk;
use rustls::ServerConfig;
use std::any::Any;
use std::fmt;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::{Instant, timeout};
use trust::RoleCertificate;

/// One check takes no longer, whatever the provider does.
const CHECK_LIMIT: Duration = Duration::from_secs(60);

/// With what a provider is to be started.
#[derive(Clone)]
pub struct Credentials {
    /// The relay's `host:port`.
    pub relay: String,
    /// The network's name.
    pub network: trust::NetworkId,
    /// The client's name.
    pub client: trust::ClientId,
    /// Its secret keys: Ed25519 (32 bytes), X25519 (32 bytes).
    pub secret: [u8; 64],
    /// Its token.
    pub token: String,
    /// Where it must be allowed to connect to.
    pub targets: Vec<SocketAddr>,
}

/// A provider that runs; dropping it stops it.
pub type Running = Box<dyn Any + Send + Sync>;

/// Starts a provider.
pub type Start = dyn Fn(&Credentials) -> anyhow::Result<Running> + Send + Sync;

/// What is checked.
pub struct Subject {
    /// Who made the network.
    pub authority: Authority,
    /// Where the kit listens as the relay.
    pub listener: TcpListener,
    /// With which certificate.
    pub certificate: RoleCertificate,
    /// Starts a provider.
    pub start: Box<Start>,
}

type Looking<'a> = Pin<Box<dyn Future<Output = Verdict> + Send + 'a>>;
type Look = for<'a> fn(&'a mut Desk<'_>) -> Looking<'a>;

macro_rules! checks {
    ($($number:literal $section:literal $name:literal $look:path;)*) => {
        static CHECKS: &[(Check, Look)] = &[$(
            (Check { number: $number, section: $section, name: $name }, |desk| Box::pin($look(desk))),
        )*];
    };
}

checks! {
    101 "3" "its hello is of version 1, signed for this connection, with its token and an epoch" coming::says_hello;
    102 "2" "unknown fields and frame types are skipped, PING comes back" coming::skips_what_it_does_not_know;
    103 "3" "it sends PING when nothing comes, gives a silent relay up, and dials anew" coming::gives_up_a_silent_relay;
    104 "3" "it comes back at the relay's pace after every code that is not final" coming::comes_back;
    105 "3" "it comes back after the connection broke, and after the relay broke the protocol" coming::comes_back_after_faults;
    106 "3" "it waits for as long as a REFUSE says" coming::keeps_a_wait;
    107 "1" "it waits for as long as is said before TLS" coming::keeps_a_wait_before_tls;
    108 "3" "it stays away after every code that is final" coming::stays_away;
    109 "3" "told to DRAIN, it dials anew first, and streams that stand go on" coming::drains;
    120 "4" "a stream goes to the target and back" carrying::carries;
    121 "6" "a target that refuses is told under the seal, and FIN follows" carrying::tells_of_refusals;
    122 "6" "a first message that comes again is replayed" carrying::refuses_replays;
    123 "6" "another time is clock_skew, another epoch is stale, another key is seal_invalid" carrying::refuses_what_is_not_meant;
    124 "5" "it sends no more than was granted, and goes on with CREDIT" carrying::keeps_to_credit;
    125 "5" "it resets with flow_control whoever sends more than it has granted" carrying::counts_credit;
    126 "5" "the end of one direction reaches the target, and the other goes on" carrying::passes_half_close;
    127 "5" "the target's end is told under the seal, with FIN" carrying::tells_of_the_end;
    128 "5" "RESET, and FIN without the sealed end, break the target's connection off" carrying::passes_resets;
    129 "6" "a message that was changed resets the stream with seal_invalid" carrying::refuses_changed_messages;
}

/// All checks of a provider.
pub fn checks() -> impl Iterator<Item = Check> {
    CHECKS.iter().map(|(check, _)| *check)
}

/// Runs the checks, those whose number `wanted` takes, one after the other.
///
/// # Errors
/// The kit itself cannot listen.
pub async fn run(subject: &Subject, wanted: impl Fn(u16) -> bool) -> anyhow::Result<Report> {
    let alpn: &[&[u8]] = &[b"holdfast/1"];
    let config = trust::server_config(&subject.certificate, alpn).context("the relay's certificate")?;
    let mut config: ServerConfig = Arc::unwrap_or_clone(config);
    config.key_log = tls::exporting();
    let config = Arc::new(config);
    let mut report = Report::default();
    for (check, look) in CHECKS.iter().filter(|(check, _)| wanted(check.number)) {
        let began = Instant::now();
        let looking = async {
            let mut desk = Desk::open(subject, Arc::clone(&config)).await?;
            look(&mut desk).await
        };
        let result = match timeout(CHECK_LIMIT, looking).await {
            Ok(Ok(Ok(()))) => Result::Passed,
            Ok(Ok(Err(Skip(why)))) => Result::Skipped(why),
            Ok(Err(error)) => Result::Failed(format!("{error:#}")),
            Err(_) => Result::Failed(format!("took longer than {} s", CHECK_LIMIT.as_secs())),
        };
        report.add(*check, result, began.elapsed());
    }
    Ok(report)
}

impl fmt::Debug for Subject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Subject").field("authority", &self.authority).finish_non_exhaustive()
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Credentials")
            .field("relay", &self.relay)
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}
