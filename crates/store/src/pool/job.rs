//! One piece of work: a task that owns its connection, and outlives its caller.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::{Instant, sleep};

use super::Shared;
use crate::StoreError;
use crate::session::{Session, Settled, Work};

type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// How work has ended.
enum End<T> {
    /// By itself.
    Done(Result<T, StoreError>),
    /// Its caller has stopped.
    Stopped,
    /// It took too long.
    TimedOut,
}

pub(super) async fn serve<T, F>(
    shared: Arc<Shared>,
    permit: OwnedSemaphorePermit,
    name: &'static str,
    work: F,
    acquire_until: Instant,
    mut reply: Reply<T>,
) where
    T: Send + 'static,
    F: for<'s> FnOnce(&'s mut Session) -> Work<'s, T> + Send + 'static,
{
    let mut session = match shared.take_idle() {
        Some(session) => session,
        None => match open(&shared, acquire_until, &mut reply).await {
            Some(Ok(session)) => session,
            Some(Err(error)) => {
                drop(permit);
                let _ = reply.send(Err(error));
                return;
            }
            None => return,
        },
    };
    if reply.is_closed() {
        // It has stopped before anything was begun.
        shared.give_back(session, permit);
        return;
    }
    session.begin_work(name);
    match run(&shared, &mut session, work, &mut reply).await {
        End::Done(Ok(value)) if !session.in_transaction() => {
            // First the connection, then the answer: a caller that comes again at once finds it.
            shared.give_back(session, permit);
            let _ = reply.send(Ok(value));
        }
        End::Done(result) => {
            let _ = reply.send(result);
            settle(&shared, session, permit).await;
        }
        End::Stopped => {
            shared.counters.stopped.add();
            settle(&shared, session, permit).await;
        }
        End::TimedOut => {
            shared.counters.work_deadlines.add();
            let limit_ms = shared.options.work_ms;
            let _ = reply.send(Err(StoreError::StatementDeadline { work: name, limit_ms }));
            settle(&shared, session, permit).await;
        }
    }
}

/// Opens a connection. A caller that stops before the attempt has begun gives up its turn; an attempt that has begun goes
/// on, and what it opens is kept. `None`: the caller has stopped.
async fn open<T>(
    shared: &Shared,
    until: Instant,
    reply: &mut Reply<T>,
) -> Option<Result<Session, StoreError>> {
    let (begun, mut has_begun) = oneshot::channel();
    let attempt = shared.gate.open(shared.path.config(), until, begun);
    tokio::pin!(attempt);
    let mut was_begun = false;
    let opened = tokio::select! {
        opened = &mut attempt => opened,
        () = reply.closed() => {
            was_begun = has_begun.try_recv().is_ok();
            if !was_begun {
                return None;
            }
            attempt.await
        }
    };
    match &opened {
        Ok(_) => shared.counters.opened.add(),
        Err(_) if was_begun || has_begun.try_recv().is_ok() => shared.counters.open_failed.add(),
        // The gate refused: it was not tried.
        Err(_) => {}
    }
    Some(opened)
}

async fn run<T, F>(shared: &Shared, session: &mut Session, work: F, reply: &mut Reply<T>) -> End<T>
where
    F: for<'s> FnOnce(&'s mut Session) -> Work<'s, T>,
{
    let work = work(session);
    tokio::select! {
        biased;
        result = work => End::Done(result),
        () = reply.closed() => End::Stopped,
        () = sleep(Duration::from_millis(shared.options.work_ms)) => End::TimedOut,
    }
}

/// Brings a connection back to rest, or closes it.
async fn settle(shared: &Shared, mut session: Session, permit: OwnedSemaphorePermit) {
    if session.is_closed() {
        shared.counters.broken.add();
        return;
    }
    let grace = Duration::from_millis(shared.options.cancel_after_ms);
    let limit = Duration::from_millis(shared.options.settle_ms);
    match session.settle(grace, limit).await {
        Ok(settled) => {
            if settled == Settled::Cancelled {
                shared.counters.cancelled.add();
            }
            shared.give_back(session, permit);
        }
        Err(why) => {
            tracing::warn!(?why, "a connection to the database is closed: it did not come to rest");
            shared.counters.unsettled.add();
        }
    }
}
