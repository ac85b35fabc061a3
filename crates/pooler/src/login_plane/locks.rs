//! Looks at the locks of servers: one connection for each server, while looks follow one another, and one look at once.

mod sql;

use super::dial::Resolver;
use super::failure::Failure;
use super::login::{Connected, connect};
use super::own_query::QueryError;
use super::request::Way;
use crate::control::inbox::{Inbox, Letter};
use crate::reactor::clock::Clock;
use locks::{Action, MAX_ROWS, Memory, judge};
use pgwire::message::frontend;
use pooling::seam::{ActOutcome, Acted, LocksSeen, LookAtLocks, Target};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::time::{Instant, timeout};

/// `application_name` of these looks: the budget counts them into the reserved slice.
pub(super) const LOOKER: &str = "holdfast locks";

/// A connection that nobody has looked through for so long is closed.
const IDLE_LIMIT: Duration = Duration::from_secs(5);
/// Longest goodbye.
const GOODBYE_LIMIT: Duration = Duration::from_millis(500);
/// Looks that wait; the engine asks for one at a time.
const CAPACITY: usize = 1;
/// SQLSTATE of a role that may not.
const INSUFFICIENT_PRIVILEGE: &str = "42501";

/// Who looks at which server; one each. Bounded by the servers' addresses.
#[derive(Debug, Default)]
pub(super) struct Lookers(HashMap<usize, Sender<(LookAtLocks, Way)>>);

impl Lookers {
    /// Hands a look to whoever looks at that server. Some if nobody does so far: it has to run.
    pub(super) fn send(&mut self, request: LookAtLocks, way: Way) -> Option<Looker> {
        let address = request.look.address;
        let rejected = match self.0.get(&address) {
            Some(sender) => match sender.try_send((request, way)) {
                Ok(()) => return None,
                // It has gone home; or the engine asks for a second look at once, which gets a looker of its own.
                Err(error) => error.into_inner(),
            },
            None => (request, way),
        };
        self.0.retain(|_, sender| !sender.is_closed());
        let (sender, requests) = mpsc::channel(CAPACITY);
        self.0.insert(address, sender);
        Some(Looker { first: Some(rejected), requests, session: None, memory: Memory::default() })
    }
}

/// The answer to a look that nobody will take.
pub(crate) fn unseen(request: &LookAtLocks) -> LocksSeen {
    LocksSeen { look: request.look, piles: None, acted: Vec::new(), took: Duration::ZERO }
}

/// Looks at one server.
#[derive(Debug)]
pub(super) struct Looker {
    first: Option<(LookAtLocks, Way)>,
    requests: Receiver<(LookAtLocks, Way)>,
    session: Option<Session>,
    memory: Memory,
}

#[derive(Debug)]
struct Session {
    connected: Connected,
    target: Arc<Target>,
    query: &'static str,
}

impl Looker {
    /// Runs until nobody has asked for a while.
    pub(super) async fn run(mut self, resolver: Resolver, inbox: Arc<Inbox>) {
        let clock = Clock::start();
        let mut is_closing = false;
        let mut first = self.first.take();
        loop {
            let next = match first.take() {
                Some(first) => Some(first),
                None if is_closing => self.requests.recv().await,
                None => match timeout(IDLE_LIMIT, self.requests.recv()).await {
                    Ok(next) => next,
                    Err(_) => {
                        // Whoever was quicker is still served, and nobody else comes.
                        self.requests.close();
                        is_closing = true;
                        continue;
                    }
                },
            };
            let Some((request, way)) = next else { break };
            let seen = self.look(&request, &way, &resolver, &clock).await;
            inbox.answer(Letter::LocksSeen(Box::new(seen)));
        }
        if let Some(mut session) = self.session {
            let mut goodbye = Vec::new();
            frontend::terminate(&mut goodbye);
            // Who does not take it has its connection closed all the same.
            let _ = timeout(GOODBYE_LIMIT, session.connected.stream.write_all(&goodbye)).await;
        }
    }

    async fn look(
        &mut self,
        request: &LookAtLocks,
        way: &Way,
        resolver: &Resolver,
        clock: &Clock,
    ) -> LocksSeen {
        let result = match timeout(request.limit, self.attempt(request, way, resolver, clock)).await {
            Ok(result) => result,
            Err(_) => Err(Failure::TimedOut(request.limit).into()),
        };
        result.unwrap_or_else(|error| {
            tracing::warn!(
                %error, address = ?request.target.address, user = request.target.user,
                "cannot look at the server's locks"
            );
            // In whatever state it is.
            self.session = None;
            unseen(request)
        })
    }

    async fn attempt(
        &mut self,
        request: &LookAtLocks,
        way: &Way,
        resolver: &Resolver,
        clock: &Clock,
    ) -> Result<LocksSeen, QueryError> {
        let mut session = match self.session.take() {
            Some(session) if session.target == request.target => session,
            _ => Session::open(request, way, resolver).await?,
        };
        let started = Instant::now();
        let rows = session.connected.query(session.query, MAX_ROWS).await?;
        let took = started.elapsed();
        let rows: Vec<_> = rows.iter().filter_map(sql::lock_row).collect();
        let piles = judge(&rows, &request.pools);
        let mut acted = Vec::new();
        for action in self.memory.decide(clock.now(), &piles, request.policy, request.grace) {
            let outcome = session.act(&action).await?;
            acted.push(Acted { action, outcome });
        }
        self.session = Some(session);
        Ok(LocksSeen { look: request.look, piles: Some(piles), acted, took })
    }
}

impl Session {
    async fn open(request: &LookAtLocks, way: &Way, resolver: &Resolver) -> Result<Self, QueryError> {
        let target = Arc::clone(&request.target);
        let mut connected = connect(&target, way, resolver, request.look.number, request.limit).await?;
        connected.query(&sql::prepare(), 0).await?;
        let version = connected.ready.parameters.iter().find(|(name, _)| name == "server_version");
        let query = sql::look(version.map(|(_, version)| version.as_str()));
        Ok(Self { connected, target, query })
    }

    async fn act(&mut self, action: &Action) -> Result<ActOutcome, QueryError> {
        match self.connected.query(&sql::act(action), 1).await {
            Ok(rows) => Ok(match rows.first().and_then(|row| row.first()) {
                Some(Some(done)) if done == "t" => ActOutcome::Done,
                Some(_) => ActOutcome::Failed,
                None => ActOutcome::Gone,
            }),
            Err(QueryError::Refused(error)) if error.code == INSUFFICIENT_PRIVILEGE => {
                Ok(ActOutcome::NotPermitted)
            }
            Err(error) => Err(error),
        }
    }
}
