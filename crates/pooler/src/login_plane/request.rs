//! What the reactor asks of the login plane.

use crate::control::inbox::Letter;
use crate::tls::ToServers;
use budget::{Look, Order};
use overload::cause::Cause;
use pooling::seam::{
    BudgetAnswer, CancelQuery, ConsoleLogin, DeriveVerifier, DerivedVerifier, LookAtLocks, OpenFailure,
    OpenServer, Target,
};
use settings::pooler::{Keepalive, ServerAddress};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use tls::TlsSession;
use tokio::sync::mpsc::{self, Receiver, Sender};

/// Requests that have not been taken up; above what the engine's own bounds let through in one turn.
const CAPACITY: usize = 16_384;

/// One request. All but the last and the end of a control connection are answered by one letter.
#[derive(Debug)]
pub(crate) enum Request {
    /// Open a server connection and log in.
    Open(OpenServer, Way),
    /// Send a cancel request.
    Cancel(CancelQuery, Option<Arc<ToServers>>),
    /// Carry out an order of a server's budget.
    Budget(BudgetOrder, Way),
    /// End the control connection of a server's budget.
    LeaveBudget(ServerAddress),
    /// Derive a verifier.
    Derive(DeriveVerifier),
    /// Look at a server's locks.
    Look(LookAtLocks, Way),
    /// Serve a console session.
    Console(HandOver),
}

/// How server connections are made at present.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    pub keepalive: Keepalive,
    /// None: without TLS.
    pub tls: Option<Arc<ToServers>>,
}

/// An order for a control connection.
#[derive(Debug)]
pub(crate) struct BudgetOrder {
    /// Where to and as whom.
    pub target: Arc<Target>,
    /// What to do.
    pub order: Order,
    /// Longest time for it.
    pub limit: Duration,
}

impl BudgetOrder {
    /// The answer to it.
    pub(crate) fn answer(&self, look: Result<Look, OpenFailure>) -> Letter {
        Letter::Budget(Box::new(BudgetAnswer {
            address: self.target.address.clone(),
            id: self.order.id,
            look,
        }))
    }
}

/// A client's connection on its way to the console.
#[derive(Debug)]
pub(crate) struct HandOver {
    /// The socket: not blocking, registered nowhere.
    pub descriptor: OwnedFd,
    /// What was sent to the client but has not left yet.
    pub unsent: Vec<u8>,
    /// Its TLS, if it has any; `unsent` is encrypted already.
    pub tls: Option<TlsSession>,
    /// Who it is.
    pub login: ConsoleLogin,
}

/// The reactor's end.
#[derive(Debug)]
pub(crate) struct PlaneSender(Sender<Request>);

/// Both ends.
pub(crate) fn channel() -> (PlaneSender, Receiver<Request>) {
    let (sender, receiver) = mpsc::channel(CAPACITY);
    (PlaneSender(sender), receiver)
}

impl PlaneSender {
    /// Never waits.
    ///
    /// # Errors
    /// The request, if the plane is full or gone.
    pub(crate) fn try_send(&self, request: Request) -> Result<(), Box<Request>> {
        self.0.try_send(request).map_err(|error| match error {
            mpsc::error::TrySendError::Full(request) | mpsc::error::TrySendError::Closed(request) => {
                Box::new(request)
            }
        })
    }
}

impl Request {
    /// The answer to a request that nobody will serve. A console session has none: it is closed.
    pub(crate) fn refuse(self) -> Option<Letter> {
        match self {
            Self::Open(request, _) => {
                let failure = OpenFailure {
                    cause: Cause::OurSide,
                    sqlstate: None,
                    client_text: "connect failed: too many server logins at once".to_owned(),
                    log_text: "the login plane is full".to_owned(),
                };
                Some(Letter::ServerFailed(request.attempt, failure))
            }
            Self::Budget(order, _) => Some(order.answer(Err(OpenFailure {
                cause: Cause::OurSide,
                sqlstate: None,
                client_text: "connect failed: too many server logins at once".to_owned(),
                log_text: "the login plane is full".to_owned(),
            }))),
            Self::LeaveBudget(_) => None,
            Self::Cancel(request, _) => Some(Letter::CancelEnded(request.server)),
            Self::Derive(DeriveVerifier { client, user, .. }) => {
                Some(Letter::Verifier(DerivedVerifier { client, user, verifier: None }))
            }
            Self::Look(request, _) => Some(Letter::LocksSeen(Box::new(super::locks::unseen(&request)))),
            Self::Console(_) => {
                tracing::error!("the login plane is full, a console session is closed");
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pooling::connection::{ServerId, SlabId};

    fn cancel(slot: u32) -> Request {
        let query = CancelQuery {
            server: ServerId::from_parts(slot, 0),
            address: ServerAddress::Tcp { host: "127.0.0.1".to_owned(), port: 1 },
            peer: None,
            process_id: 1,
            secret_key: vec![0; 4],
            limit: Duration::from_secs(1),
        };
        Request::Cancel(query, None)
    }

    #[test]
    fn a_request_beyond_the_capacity_comes_back_and_is_answered() {
        let (sender, _receiver) = channel();
        for _ in 0..CAPACITY {
            sender.try_send(cancel(0)).unwrap();
        }
        let refused = sender.try_send(cancel(7)).unwrap_err().refuse();
        assert!(matches!(refused, Some(Letter::CancelEnded(server)) if server == ServerId::from_parts(7, 0)));
    }
}
