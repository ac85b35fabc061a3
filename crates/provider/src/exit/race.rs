//! Happy Eyeballs (RFC 8305): lookups of both families and attempts to connect run at once, and the first connection wins.

use super::resolver::{Answer, Lookups, Question};
use super::{Failure, Reached};
use egress::{Checked, Refusal};
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

/// The head start of an attempt over the next one (RFC 8305 §5).
pub(super) const ATTEMPT_DELAY: Duration = Duration::from_millis(250);
/// How long IPv4 waits for an answer about IPv6 (RFC 8305 §3).
const RESOLUTION_DELAY: Duration = Duration::from_millis(50);
/// Attempts of one open, one after the other or at once.
const ATTEMPTS_MAX: usize = 8;

/// The addresses of a name as they become known, each checked before it can be tried.
pub(super) struct Addresses<C> {
    check: C,
    v6: Option<Question>,
    v4: Option<Question>,
    waiting_v6: VecDeque<Checked>,
    waiting_v4: VecDeque<Checked>,
    /// Families take turns (RFC 8305 §4).
    v4_is_next: bool,
    failure: Failure,
}

impl<C: Fn(IpAddr) -> Result<Checked, Refusal>> Addresses<C> {
    pub(super) fn new(check: C, lookups: Lookups) -> Self {
        Self {
            check,
            v6: lookups.v6,
            v4: lookups.v4,
            waiting_v6: VecDeque::new(),
            waiting_v4: VecDeque::new(),
            v4_is_next: false,
            failure: Failure::NameNotFound,
        }
    }

    fn take_answer(&mut self, answer: Answer, is_v6: bool) {
        let addresses = match answer {
            Ok(addresses) => addresses,
            Err(failure) => return self.failed(failure),
        };
        for address in addresses {
            match (self.check)(address) {
                Ok(checked) if is_v6 => self.waiting_v6.push_back(checked),
                Ok(checked) => self.waiting_v4.push_back(checked),
                Err(refusal) => self.failed(Failure::Policy(refusal)),
            }
        }
    }

    fn failed(&mut self, failure: Failure) {
        self.failure = self.failure.or(failure);
    }

    fn next(&mut self) -> Option<Checked> {
        let (first, second) = if self.v4_is_next {
            (&mut self.waiting_v4, &mut self.waiting_v6)
        } else {
            (&mut self.waiting_v6, &mut self.waiting_v4)
        };
        let next = first.pop_front().or_else(|| second.pop_front())?;
        self.v4_is_next = next.address().is_ipv6();
        Some(next)
    }

    const fn is_known(&self) -> bool {
        self.v6.is_none() && self.v4.is_none()
    }
}

/// The first connection that is there, or why there is none.
pub(super) async fn race<C: Fn(IpAddr) -> Result<Checked, Refusal>>(
    mut addresses: Addresses<C>,
    deadline: Instant,
) -> Result<Reached, Failure> {
    let mut attempts: JoinSet<(SocketAddr, io::Result<TcpStream>)> = JoinSet::new();
    let mut left = ATTEMPTS_MAX;
    let mut next_at = Instant::now();
    loop {
        let may_start = left > 0 && !(addresses.waiting_v6.is_empty() && addresses.waiting_v4.is_empty());
        if attempts.is_empty() && !may_start && addresses.is_known() {
            return Err(addresses.failure);
        }
        tokio::select! {
            biased;
            Some(ended) = attempts.join_next() => match ended {
                Ok((address, Ok(stream))) => return Ok(Reached { stream, address }),
                Ok((_, Err(error))) => {
                    addresses.failed(Failure::of_connect(&error));
                    next_at = Instant::now();
                }
                Err(_) => addresses.failed(Failure::Unreachable),
            },
            answer = ask(&mut addresses.v6) => {
                addresses.take_answer(answer, true);
                next_at = next_at.min(Instant::now() + if attempts.is_empty() { Duration::ZERO } else { ATTEMPT_DELAY });
            }
            answer = ask(&mut addresses.v4) => {
                addresses.take_answer(answer, false);
                if addresses.v6.is_some() && attempts.is_empty() {
                    next_at = Instant::now() + RESOLUTION_DELAY;
                }
            }
            () = sleep_until(next_at), if may_start => {
                if let Some(checked) = addresses.next() {
                    let address = checked.address();
                    attempts.spawn(async move { (address, TcpStream::connect(address).await) });
                    left -= 1;
                    next_at = Instant::now() + ATTEMPT_DELAY;
                }
            }
            () = sleep_until(deadline) => {
                // A name server that is late says nothing about the target.
                let silent = if attempts.is_empty() { Failure::Resolver } else { Failure::Timeout };
                return Err(addresses.failure.or(silent));
            }
        }
    }
}

/// The answer to a question, once; nothing if there is no question.
async fn ask(question: &mut Option<Question>) -> Answer {
    match question {
        Some(asked) => {
            let answer = asked.await;
            *question = None;
            answer
        }
        None => std::future::pending().await,
    }
}
