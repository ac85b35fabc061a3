use super::*;
use crate::state::MonthCap;

const USER: User = User { opener: [1; 16], contract: [1; 16] };

fn wall(minute: u16) -> Wall {
    Wall { unix_ms: 1_796_077_800_000, month: 202_611, day: 30, minute }
}

fn gate(limits: Limits) -> Arc<Gate> {
    Gate::new(Clock::start(), limits, Wishes::default(), Usage::default(), wall(0))
}

fn limits() -> Limits {
    Limits { streams: 100, ..Limits::default() }
}

fn scan(place: &Place, hosts: u16) {
    for host in 0..hosts {
        let target = format!("h{host}.test:22").parse().unwrap();
        place.attempted(&target, Err(Failure::Refused));
    }
}

#[tokio::test]
async fn a_place_is_free_again_when_its_stream_has_ended() {
    let gate = gate(Limits { streams: 2, ..Limits::default() });
    let first = gate.enter(USER).unwrap();
    let _second = gate.enter(USER).unwrap();
    assert_eq!(gate.enter(USER).unwrap_err(), Refused::Streams);
    drop(first);
    let _third = gate.enter(USER).unwrap();
    let account = gate.account();
    assert_eq!((account.taken, *gate.streams().borrow()), (3, 2));
}

#[tokio::test]
async fn pause_takes_no_new_streams_and_leaves_those_that_are() {
    let gate = gate(limits());
    let mut place = gate.enter(USER).unwrap();
    gate.set_wishes(Wishes { paused: true, ..Wishes::default() }, wall(0));
    assert_eq!(gate.enter(USER).unwrap_err(), Refused::Closed(Closed::Paused));
    assert!(tokio::time::timeout(Duration::from_millis(20), place.must_end()).await.is_err());
    gate.set_wishes(Wishes::default(), wall(0));
    assert!(gate.enter(USER).is_ok());
}

#[tokio::test]
async fn the_months_limit_ends_streams_in_the_middle_and_a_higher_one_opens_again() {
    let gate = gate(Limits { month: Some(ByteCount(1_000)), ..limits() });
    let mut place = gate.enter(USER).unwrap();
    let month = tokio::spawn({
        let gate = Arc::clone(&gate);
        async move { gate.keep_month().await }
    });
    gate.meter().set_left(Some(0));
    assert_eq!(tokio::time::timeout(Duration::from_secs(5), place.must_end()).await.unwrap(), Ended::Month);
    month.abort();
    gate.lock().usage.add(1_000);
    gate.look(wall(1));
    assert_eq!(gate.enter(USER).unwrap_err(), Refused::Closed(Closed::Month));
    let openness = *gate.openness().borrow();
    assert!(openness.opens_at_ms.unwrap() > wall(1).unix_ms);
    gate.set_wishes(Wishes { paused: false, month: Some(MonthCap::Bytes(2_000)) }, wall(1));
    assert!(gate.enter(USER).is_ok());
    gate.set_wishes(Wishes::default(), wall(1));
    assert!(gate.enter(USER).is_err());
    // Not a month that the clock on the wall has had.
    gate.look(Wall { month: 999_912, day: 1, ..wall(1) });
    assert!(gate.enter(USER).is_ok(), "a new month");
}

#[tokio::test]
async fn hours_open_and_close_by_the_clock_on_the_wall() {
    let gate = gate(Limits { hours: "22:00-06:00".parse().unwrap(), ..limits() });
    assert!(gate.enter(USER).is_ok(), "midnight");
    gate.look(wall(6 * 60));
    assert_eq!(gate.enter(USER).unwrap_err(), Refused::Closed(Closed::Hours));
    let away =
        stay_away(Refused::Closed(Closed::Hours), *gate.openness().borrow(), wall(360).unix_ms).unwrap();
    assert!(away <= Duration::from_secs(16 * 3_600) && away > Duration::from_secs(16 * 3_600 - 60));
    gate.look(wall(22 * 60));
    assert!(gate.enter(USER).is_ok());
}

#[tokio::test]
async fn a_scan_ends_the_streams_of_its_contract_and_no_others() {
    let gate = gate(limits());
    let other = User { contract: [2; 16], ..USER };
    let (mut scanner, mut neighbour) = (gate.enter(USER).unwrap(), gate.enter(other).unwrap());
    scan(&scanner, 31);
    assert_eq!(tokio::time::timeout(Duration::from_secs(5), scanner.must_end()).await.unwrap(), Ended::Brake);
    assert_eq!(gate.enter(USER).unwrap_err(), Refused::Brake);
    assert!(tokio::time::timeout(Duration::from_millis(20), neighbour.must_end()).await.is_err());
    assert!(gate.enter(other).is_ok());
    assert_eq!(gate.account().stops, 1);
}

#[tokio::test]
async fn a_new_contract_for_each_scan_stops_the_opener() {
    let gate = gate(limits());
    for contract in 1..=3 {
        let place = gate.enter(User { contract: [contract; 16], ..USER }).unwrap();
        scan(&place, 31);
    }
    assert_eq!(gate.enter(User { contract: [9; 16], ..USER }).unwrap_err(), Refused::Brake);
    assert!(gate.enter(User { opener: [2; 16], ..USER }).is_ok());
}

#[tokio::test]
async fn names_that_do_not_exist_and_refused_targets_are_no_scan() {
    let gate = gate(limits());
    let place = gate.enter(USER).unwrap();
    for host in 0..100 {
        let target = format!("h{host}.test:22").parse().unwrap();
        place.attempted(&target, Err(Failure::NameNotFound));
    }
    assert!(gate.enter(USER).is_ok());
    assert!(gate.lock().cuts.len() == 1);
    drop(place);
}
