//! Control connections: one to each server that has a budget. Its locks are this pooler's places; what it sees of the
//! others' and of the backends says how many of them may be used.
//!
//! The rules are those of the room `budget`: here an order becomes SQL, and rows become a look. A session that fails in any
//! way is dropped, and with it all that it holds: whoever gives orders must know that.

mod rows;
mod session;
mod sql;

use super::dial::Resolver;
use super::failure::Failure;
use super::request::{BudgetOrder, Way};
use budget::{Look, Order};
use pooling::seam::OpenFailure;
use session::{Session, SessionName};
use settings::pooler::ServerAddress;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::time::timeout;

/// The control connections, by server. While one works on an order it is not in here.
#[derive(Clone, Debug, Default)]
pub(super) struct Controls {
    places: Arc<Mutex<HashMap<ServerAddress, Place>>>,
}

#[derive(Debug, Default)]
struct Place {
    session: Option<Session>,
    /// The last one, which the server may not have noticed to be gone.
    last: Option<SessionName>,
    /// It is to end when it comes back.
    is_left: bool,
}

impl Controls {
    /// Carries out an order, within its limit.
    ///
    /// # Errors
    /// Why there is no session any more.
    pub(super) async fn carry_out(
        &self,
        order: &BudgetOrder,
        way: &Way,
        resolver: &Resolver,
    ) -> Result<Look, OpenFailure> {
        let address = &order.target.address;
        let (session, last) = self.take(address, &order.order);
        let attempt = async {
            let mut session = match session {
                Some(session) => session,
                None if order.order.begins_session => {
                    Session::begin(&order.target, way, resolver, order.limit, last.as_ref()).await?
                }
                None => return Err(Failure::Control("its session has ended".to_owned())),
            };
            let look = session.carry_out(&order.order).await?;
            Ok((session, look))
        };
        let result = match timeout(order.limit, attempt).await {
            Ok(result) => result,
            Err(_) => Err(Failure::TimedOut(order.limit)),
        };
        match result {
            Ok((session, look)) => {
                self.put_back(address, session);
                Ok(look)
            }
            Err(failure) => Err(failure.into_answer(&order.target)),
        }
    }

    /// Ends the session with a server, now or when its order is done.
    pub(super) fn leave(&self, address: &ServerAddress) {
        let mut places = self.lock();
        match places.get_mut(address) {
            Some(place) if place.session.is_none() => place.is_left = true,
            _ => {
                places.remove(address);
            }
        }
    }

    /// The session for this order: a new one takes the place of any that is there.
    fn take(&self, address: &ServerAddress, order: &Order) -> (Option<Session>, Option<SessionName>) {
        let mut places = self.lock();
        let place = places.entry(address.clone()).or_default();
        place.is_left = false;
        let session = place.session.take();
        (session.filter(|_| !order.begins_session), place.last.clone())
    }

    fn put_back(&self, address: &ServerAddress, session: Session) {
        let mut places = self.lock();
        if let Some(place) = places.get_mut(address) {
            if place.is_left {
                places.remove(address);
                return;
            }
            place.last = Some(session.name().clone());
            place.session = Some(session);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ServerAddress, Place>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
