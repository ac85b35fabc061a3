//! Also gives other modules' tests a handle that somebody answers.

use super::inbox::{Inbox, Letter, MAX_QUESTIONS};
use super::{Ask, EngineHandle, ReactorSilent};
use mio::{Events, Poll, Token, Waker};
use pooling::Shutdown;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// A handle whose questions are given to `answer` on a thread of its own, until all handles are gone.
pub(crate) fn answering(mut answer: impl FnMut(Ask) + Send + 'static) -> EngineHandle {
    let (mut poll, inbox) = inbox();
    let handle = EngineHandle::new(Arc::clone(&inbox));
    std::thread::spawn(move || {
        let mut events = Events::with_capacity(8);
        let mut taken = VecDeque::new();
        while Arc::strong_count(&inbox) > 1 {
            poll.poll(&mut events, Some(Duration::from_millis(10))).unwrap();
            inbox.take(&mut taken, usize::MAX);
            for letter in taken.drain(..) {
                if let Letter::Ask(ask) = letter {
                    answer(ask);
                }
            }
        }
    });
    handle
}

fn inbox() -> (Poll, Arc<Inbox>) {
    let poll = Poll::new().unwrap();
    let waker = Waker::new(poll.registry(), Token(0)).unwrap();
    (poll, Arc::new(Inbox::new(waker)))
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
}

#[test]
fn a_question_is_answered() {
    let handle = answering(|ask| {
        if let Ask::Pools(answer) = ask {
            answer.send(Vec::new()).unwrap();
        }
    });
    // Real time here: the answer comes from another thread.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    assert!(runtime.block_on(handle.pools()).unwrap().is_empty());
}

#[test]
fn a_silent_reactor_is_an_error_and_not_a_hang() {
    let (_poll, inbox) = inbox();
    let handle = EngineHandle::new(inbox);
    assert_eq!(runtime().block_on(handle.overview()).unwrap_err(), ReactorSilent);
}

#[test]
fn a_reactor_that_drops_the_question_is_an_error_at_once() {
    let handle = answering(drop);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    assert_eq!(runtime.block_on(handle.clients()).unwrap_err(), ReactorSilent);
}

#[test]
fn questions_are_bounded_and_a_stop_is_never_refused() {
    let (_poll, inbox) = inbox();
    for _ in 0..MAX_QUESTIONS {
        inbox.ask(Ask::Pools(tokio::sync::oneshot::channel().0)).unwrap();
    }
    assert_eq!(inbox.ask(Ask::Pools(tokio::sync::oneshot::channel().0)), Err(ReactorSilent));
    inbox.order_shutdown(Shutdown::WaitForClients);
    inbox.order_shutdown(Shutdown::Now);

    let mut taken = VecDeque::new();
    assert!(inbox.take(&mut taken, 1));
    assert!(matches!(taken.pop_front(), Some(Letter::Ask(Ask::ShutDown(Shutdown::Now)))));
    taken.clear();
    assert!(!inbox.take(&mut taken, usize::MAX));
    assert_eq!(taken.len(), MAX_QUESTIONS - 1);
    inbox.ask(Ask::Pools(tokio::sync::oneshot::channel().0)).unwrap();
}

#[test]
fn the_reactor_is_woken_only_when_the_inbox_was_empty() {
    let (mut poll, inbox) = inbox();
    let mut events = Events::with_capacity(8);
    inbox.order_shutdown(Shutdown::Now);
    poll.poll(&mut events, Some(Duration::ZERO)).unwrap();
    assert_eq!(events.iter().count(), 1);
    inbox.ask(Ask::Pools(tokio::sync::oneshot::channel().0)).unwrap();
    poll.poll(&mut events, Some(Duration::ZERO)).unwrap();
    assert_eq!(events.iter().count(), 0);
}
