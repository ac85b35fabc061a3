//! One stream from its open to its end.

use crate::exit::{Exit, Failure, Family};
use crate::gate::{Closed, Ended, Gate, Refused, User, stay_away};
use crate::ledger::Ledger;
use client::{Code, Host as LinkHost, IncomingOpen, SpliceEnd, SpliceLimits, Target as LinkTarget};
use egress::{Host, HostError, Target};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;

/// The kernel looks after a target that has been quiet for so long.
const KEEP_ALIVE_AFTER: Duration = Duration::from_secs(60);

/// Carries what is opened.
#[derive(Debug)]
pub(crate) struct Carrier {
    pub(crate) exit: Exit,
    pub(crate) gate: Arc<Gate>,
    pub(crate) ledger: Ledger,
}

impl Carrier {
    /// Answers an open, and carries the stream to its end.
    pub(crate) async fn carry(&self, open: IncomingOpen) {
        let user = User { opener: open.opener().bytes(), contract: open.contract().bytes() };
        let mut place = match self.gate.enter(user) {
            Ok(place) => place,
            Err(refused) => {
                let openness = *self.gate.openness().borrow();
                let away = stay_away(refused, openness, clock::unix_ms());
                self.ledger.refused(refused.label());
                return open.refuse(refusal_code(refused), &refused.to_string(), away);
            }
        };
        let target = match target(open.target()) {
            Ok(target) => target,
            Err(error) => {
                self.ledger.refused("malformed");
                return open.fail(Code::Policy, &error.to_string());
            }
        };
        let reached = tokio::select! {
            reached = self.exit.connect(&target, family(open.family()), open.deadline()) => reached,
            // Nobody works for someone who has left.
            () = open.cancelled() => return self.ledger.refused("opener_left"),
        };
        place.attempted(&target, reached.as_ref().map(|_| ()).map_err(|failure| *failure));
        drop(target);
        let reached = match reached {
            Ok(reached) => reached,
            Err(failure) => {
                self.ledger.refused(failure.label());
                return open.fail(failure_code(failure), &failure.to_string());
            }
        };
        prepare(&reached.stream);
        // An opener that has left meanwhile leaves nothing to be done.
        let Ok(stream) = open.accept(reached.address.ip()) else { return self.ledger.refused("opener_left") };
        let splice = stream.splice(reached.stream, &[], SpliceLimits::default());
        let end = tokio::select! {
            report = splice => label(report.end),
            ended = place.must_end() => match ended {
                Ended::Month => "month",
                Ended::Brake => "brake",
            },
        };
        self.ledger.ended(end);
    }
}

fn prepare(stream: &TcpStream) {
    // A socket without these works, too.
    let _ = stream.set_nodelay(true);
    let _ = rustix::net::sockopt::set_socket_keepalive(stream, true);
    let _ = rustix::net::sockopt::set_tcp_keepidle(stream, KEEP_ALIVE_AFTER);
}

/// Text goes through the one parser, whatever it looks like.
fn target(asked: &LinkTarget) -> Result<Target, HostError> {
    let host = match &asked.host {
        LinkHost::Name(text) => text.parse()?,
        LinkHost::Address(address) => Host::from(*address),
    };
    Ok(Target { host, port: asked.port })
}

const fn family(asked: client::Family) -> Family {
    match asked {
        client::Family::Any => Family::Any,
        client::Family::V4 => Family::V4,
        client::Family::V6 => Family::V6,
    }
}

/// Another provider may do better: the relay may see these.
const fn refusal_code(refused: Refused) -> Code {
    match refused {
        Refused::Closed(Closed::Paused | Closed::Hours | Closed::Stopping) => Code::Paused,
        Refused::Closed(Closed::Month) | Refused::Streams | Refused::Brake => Code::Limit,
    }
}

const fn failure_code(failure: Failure) -> Code {
    match failure {
        Failure::Refused => Code::TargetRefused,
        Failure::Unreachable | Failure::Resolver | Failure::Family => Code::TargetUnreachable,
        Failure::Timeout => Code::TargetTimeout,
        Failure::NameNotFound => Code::NameNotFound,
        Failure::Policy(_) => Code::Policy,
        Failure::Exhausted => Code::Limit,
    }
}

const fn label(end: SpliceEnd) -> &'static str {
    match end {
        SpliceEnd::Finished => "finished",
        SpliceEnd::Reset(code) => code.label(),
        SpliceEnd::Broken => "target_broke_off",
        SpliceEnd::Idle => "idle",
    }
}
