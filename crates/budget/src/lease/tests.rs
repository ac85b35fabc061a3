use super::*;
use crate::order::Other;
use crate::terms::Size;

const LIMITS: ServerLimits = ServerLimits { connections: 100, reserved: 3 };

fn at(millis: u64) -> Moment {
    Moment::from_micros(millis * 1000)
}

fn lease(budget: usize) -> Lease {
    let terms =
        Terms { size: Size::Connections(budget), reserved: 2, chunk: 4, settle: Duration::from_millis(400) };
    Lease::new(terms, at(0))
}

const fn demand(wanted: usize) -> Demand {
    Demand { wanted, minimum: 0 }
}

/// The order that is due by then, and its answer: all that it asks for is given, and `look` is what else is seen.
fn serve(lease: &mut Lease, now: u64, demand: Demand, look: Look) -> Order {
    let Step::Ask(order) = lease.next_step(at(now), demand) else { panic!("an order is due at {now}") };
    let held = lease.held.iter().map(|held| held.chunk);
    let free = order.candidates.iter().copied().filter(|chunk| !lease.held.iter().any(|h| h.chunk == *chunk));
    let mine = held.chain(free.take(order.take)).collect();
    let look = Look { mine, controls: look.controls.max(1), limits: LIMITS, ..look };
    lease.looked(at(now), order.id, &look);
    order
}

/// A lease with places for ten that may be used at 800 ms.
fn settled(budget: usize, wanted: usize) -> Lease {
    let mut lease = lease(budget);
    for now in [0, 400, 800] {
        serve(&mut lease, now, demand(wanted), Look::default());
    }
    lease
}

#[test]
fn without_need_nothing_is_asked() {
    assert_eq!(lease(30).next_step(at(0), demand(0)), Step::Rest);
}

#[test]
fn a_fresh_place_rests_before_it_is_used() {
    let mut lease = lease(30);
    let order = serve(&mut lease, 0, demand(10), Look::default());
    assert!(order.begins_session);
    assert_eq!((order.take, lease.view(at(0)).places), (3, 12));
    assert_eq!(lease.may_open(at(0)), 0, "whoever had it may have a login under way");
    assert!(!lease.is_exhausted(at(0)));
    assert_eq!(lease.next_step(at(1), demand(10)), Step::At(at(400)));
    let order = serve(&mut lease, 400, demand(10), Look::default());
    assert!(!order.begins_session && order.take == 0);
    assert_eq!(lease.may_open(at(400)), 12);
    // One that is taken later rests as well, whatever the looks say.
    for _ in 0..12 {
        lease.began();
    }
    let order = serve(&mut lease, 450, demand(1), Look::default());
    assert_eq!((order.take, lease.view(at(450)).places), (1, 16));
    assert_eq!(lease.may_open(at(450)), 0);
    serve(&mut lease, 800, demand(1), Look::default());
    assert_eq!(lease.may_open(at(800)), 0, "not 400 ms yet");
    serve(&mut lease, 850, demand(1), Look::default());
    assert_eq!(lease.may_open(at(850)), 4);
}

#[test]
fn an_answer_proves_the_control_connection_for_a_quarter_of_the_rest() {
    let mut lease = settled(30, 10);
    assert_eq!(lease.may_open(at(900)), 12);
    assert_eq!(lease.may_open(at(901)), 0, "its locks may be another's by now");
    serve(&mut lease, 901, demand(10), Look::default());
    assert_eq!(lease.may_open(at(901)), 12, "a round trip is enough");
}

#[test]
fn without_its_control_connection_nothing_new_is_opened_and_what_is_open_counts_on() {
    let mut lease = settled(30, 10);
    for process_id in 1..=4 {
        lease.began();
        lease.opened(at(800), process_id);
    }
    let order = serve(&mut lease, 900, demand(1), Look::default());
    assert_eq!(order.register, [1, 2, 3, 4]);
    let Step::Ask(order) = lease.next_step(at(1001), demand(4)) else { panic!("an order is due") };
    lease.lost(at(1100), order.id, Cause::Crashed, 0);
    let view = lease.view(at(1100));
    assert_eq!((view.state, view.used, view.places, view.losses), (LeaseState::Lost, 4, 0, 1));
    assert_eq!(lease.may_open(at(1100)), 0);
    let Step::At(retry) = lease.next_step(at(1100), demand(4)) else {
        panic!("it rests before it tries again")
    };
    assert!(retry > at(1100) && retry < at(1300));
    // A new session knows nothing.
    let order = serve(&mut lease, 1300, demand(4), Look::default());
    assert!(order.begins_session);
    assert_eq!((order.register, order.take), (vec![1, 2, 3, 4], 2));
    assert_eq!(lease.may_open(at(1300)), 0);
}

#[test]
fn an_answer_to_an_order_that_was_given_up_is_not_believed() {
    let mut lease = settled(30, 4);
    let Step::Ask(order) = lease.next_step(at(900), demand(20)) else { panic!("an order is due") };
    lease.lost(at(901), order.id, Cause::TimedOut, 0);
    lease.looked(at(902), order.id, &Look { mine: vec![Chunk::new(0, 4)], ..Look::default() });
    assert_eq!(lease.view(at(902)).places, 0);
}

#[test]
fn what_others_hold_and_what_nobody_owns_leaves_less() {
    let mut lease = lease(30);
    let other = Other { places: 8, servers: 3, is_starving: false };
    // Of a session that lost its places and kept its servers.
    let poor = Other { places: 4, servers: 7, is_starving: false };
    let look =
        || Look { others: vec![other, poor], unowned: vec![91, 92, 93], controls: 3, ..Look::default() };
    serve(&mut lease, 0, demand(28), look());
    serve(&mut lease, 400, demand(28), look());
    // 30, less three control connections (more than are reserved), 8, 7 and 3.
    assert_eq!(lease.may_open(at(400)), 9);
    assert!(!lease.is_exhausted(at(400)), "nine may be opened still");
    for _ in 0..9 {
        lease.began();
    }
    assert!(lease.is_exhausted(at(400)));
}

#[test]
fn a_connection_counts_until_its_process_is_seen_gone() {
    let mut lease = settled(30, 4);
    lease.began();
    lease.opened(at(800), 7);
    serve(&mut lease, 810, demand(4), Look::default());
    lease.ended(at(820), 7, false);
    assert_eq!(lease.view(at(820)).doubtful, 1);
    let order = serve(&mut lease, 830, demand(4), Look { present: vec![7], ..Look::default() });
    assert_eq!((order.doubtful, lease.view(at(830)).used), (vec![7], 1));
    serve(&mut lease, 840, demand(4), Look::default());
    assert_eq!(lease.view(at(840)).used, 0);
    let order = serve(&mut lease, 850, demand(4), Look::default());
    assert_eq!(order.forget, [7]);
    // A login that timed out has told no process id: what a look would see of it is seen after the rest.
    lease.began();
    lease.failed(at(860), true);
    serve(&mut lease, 1259, demand(4), Look::default());
    assert_eq!(lease.view(at(1259)).used, 1);
    serve(&mut lease, 1270, demand(4), Look::default());
    assert_eq!(lease.view(at(1270)).used, 0);
}

#[test]
fn whoever_has_two_chunks_more_than_one_who_lacks_some_gives_one() {
    let mut lease = settled(30, 10);
    for process_id in 1..=10 {
        lease.began();
        lease.opened(at(800), process_id);
    }
    let poor =
        |places| Look { others: vec![Other { places, servers: 0, is_starving: true }], ..Look::default() };
    serve(&mut lease, 900, demand(1), poor(8));
    assert_eq!(lease.excess(), 0, "one chunk more is no injustice");
    serve(&mut lease, 1900, demand(1), poor(4));
    assert_eq!(lease.excess(), 2, "ten, and eight places to keep");
    for process_id in [1, 2] {
        lease.ended(at(1950), process_id, true);
    }
    let order = serve(&mut lease, 1960, demand(1), poor(4));
    assert_eq!(order.release.len(), 1);
    // A minimum is kept, but from one who has nothing at all for long.
    let minimum = Demand { wanted: 0, minimum: 8 };
    serve(&mut lease, 3000, minimum, poor(0));
    assert_eq!(lease.excess(), 0);
    serve(&mut lease, 4000, minimum, poor(0));
    assert_eq!(lease.excess(), 4);
}

#[test]
fn a_surplus_goes_back_after_a_while_and_at_once_if_another_lacks_places() {
    let mut lease = settled(30, 10);
    assert_eq!(lease.next_step(at(900), demand(0)), Step::At(at(1800)));
    let order = serve(&mut lease, 1800, demand(0), Look::default());
    assert_eq!(order.release, []);
    let order = serve(&mut lease, 5900, demand(0), Look::default());
    assert_eq!(order.release.len(), 3);
    assert_eq!(lease.next_step(at(9000), demand(0)), Step::Rest);

    let mut lease = settled(30, 10);
    let poor = Other { places: 16, servers: 16, is_starving: true };
    serve(&mut lease, 1800, demand(0), Look { others: vec![poor], ..Look::default() });
    let order = serve(&mut lease, 1810, demand(0), Look::default());
    assert_eq!(order.release.len(), 3);
}

#[test]
fn an_automatic_budget_is_what_the_server_allows_less_a_margin() {
    let terms = Terms { size: Size::Automatic, reserved: 2, chunk: 4, settle: Duration::from_millis(400) };
    let mut lease = Lease::new(terms, at(0));
    let order = serve(&mut lease, 0, demand(1), Look::default());
    assert_eq!(order.take, 0, "not known yet");
    assert_eq!(lease.view(at(0)).budget, Some(94));
    let order = serve(&mut lease, 10, demand(1), Look::default());
    assert_eq!((order.take, order.candidates.len()), (1, 23));
}

#[test]
fn too_many_connections_of_the_server_make_less_usable() {
    let mut lease = settled(30, 10);
    for process_id in 1..=5 {
        lease.began();
        lease.opened(at(800), process_id);
    }
    lease.began();
    lease.refused(at(810));
    lease.failed(at(810), false);
    assert_eq!((lease.may_open(at(820)), lease.view(at(820)).estimate), (0, Some(5)));
}
