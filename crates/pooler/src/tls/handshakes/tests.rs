use super::super::fixtures::{context, peer};
use super::*;
use mio::{Events, Poll, Token, Waker};
use pooling::connection::{ClientId, SlabId};
use std::collections::VecDeque;
use std::time::Duration;

fn id(slot: u32) -> ConnectionId {
    ClientId::from_parts(slot, 0).into()
}

#[test]
fn a_step_is_run_elsewhere_and_one_that_nobody_waits_for_is_not() {
    let mut poll = Poll::new().unwrap();
    let inbox = Arc::new(Inbox::new(Waker::new(poll.registry(), Token(0)).unwrap()));
    let handshakes = Handshakes::start(&inbox).unwrap();
    let (clients, servers) = context("");
    let mut incoming = Vec::new();
    let mut client = servers.connect("localhost", peer()).unwrap();
    client.process(&mut [], &mut Vec::new(), &mut incoming).unwrap();
    let alive = Arc::new(());
    // The first is of a client that has left while it waited.
    for (slot, alive) in [(1, Weak::new()), (2, Arc::downgrade(&alive))] {
        let session = clients.accept(false).unwrap();
        assert!(handshakes.take(Step { id: id(slot), session, incoming: incoming.clone(), alive }));
    }
    let mut letters = VecDeque::new();
    poll.poll(&mut Events::with_capacity(1), Some(Duration::from_secs(10))).unwrap();
    inbox.take(&mut letters, 10);
    let Some(Letter::Handshake(stepped)) = letters.pop_front() else { panic!("another letter") };
    assert_eq!(stepped.id, id(2));
    assert!(stepped.result.is_ok() && !stepped.out.is_empty());
    assert!(letters.is_empty());
}

#[test]
fn steps_that_wait_are_bounded() {
    // Nobody takes them.
    let handshakes = Handshakes { queue: Arc::default() };
    let (clients, _) = context("");
    for _ in 0..MAX_WAITING {
        let session = clients.accept(false).unwrap();
        handshakes.queue.lock().steps.push_back(Step {
            id: id(0),
            session,
            incoming: Vec::new(),
            alive: Weak::new(),
        });
    }
    let session = clients.accept(false).unwrap();
    assert!(!handshakes.take(Step { id: id(0), session, incoming: Vec::new(), alive: Weak::new() }));
    handshakes.queue.lock().steps.pop_front();
    let session = clients.accept(false).unwrap();
    assert!(handshakes.take(Step { id: id(0), session, incoming: Vec::new(), alive: Weak::new() }));
}
