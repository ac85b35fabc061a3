use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

const LIMIT: usize = 8;

fn at(micros: u64) -> Moment {
    Moment::from_micros(micros)
}

fn us(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

fn line_of(items: &[(u32, u64)]) -> (Line<u32>, Vec<Ticket>) {
    let mut line = Line::new(LIMIT);
    let tickets = items.iter().map(|(item, queued)| line.push_back(*item, at(*queued)).unwrap()).collect();
    (line, tickets)
}

fn items(line: &Line<u32>) -> Vec<u32> {
    line.iter().map(|(item, _)| *item).collect()
}

#[test]
fn first_come_first_served() {
    let (mut line, _) = line_of(&[(1, 10), (2, 20), (3, 30)]);
    assert_eq!(line.front(), Some((&1, at(10))));
    assert_eq!(line.pop_front(), Some((1, at(10))));
    assert_eq!(line.pop_front(), Some((2, at(20))));
    assert_eq!(line.pop_front(), Some((3, at(30))));
    assert_eq!(line.pop_front(), None);
    assert!(line.is_empty());
}

#[test]
fn leaving_from_front_middle_and_back_keeps_the_order_of_the_others() {
    for (gone, rest) in [(0, [2, 3]), (1, [1, 3]), (2, [1, 2])] {
        let (mut line, tickets) = line_of(&[(1, 10), (2, 20), (3, 30)]);
        assert_eq!(line.remove(tickets[gone]), Some(gone as u32 + 1));
        assert_eq!(items(&line), rest);
        line.push_back(4, at(40)).unwrap();
        assert_eq!(items(&line), [rest[0], rest[1], 4]);
        assert_eq!(line.len(), 3);
    }
}

#[test]
fn a_ticket_is_good_for_one_leaving_even_when_its_place_is_taken_again() {
    let (mut line, tickets) = line_of(&[(1, 10)]);
    assert_eq!(line.entry(tickets[0]), Some((&1, at(10))));
    assert_eq!(line.remove(tickets[0]), Some(1));
    assert_eq!(line.remove(tickets[0]), None);
    let newcomer = line.push_back(2, at(20)).unwrap();
    assert_eq!(newcomer.index, tickets[0].index, "the place is used again");
    assert_eq!(line.remove(tickets[0]), None);
    assert_eq!(line.entry(tickets[0]), None);
    assert_eq!(items(&line), [2]);
}

#[test]
fn a_ticket_from_before_a_shrink_stays_invalid() {
    let (mut line, tickets) = line_of(&[(1, 10)]);
    line.pop_front();
    line.shrink();
    line.push_back(2, at(20)).unwrap();
    assert_eq!(line.remove(tickets[0]), None);
    assert_eq!(items(&line), [2]);
}

#[test]
fn the_limit_refuses_one_more_and_a_leaving_makes_room() {
    let mut line = Line::new(2);
    line.push_back(1, at(10)).unwrap();
    let second = line.push_back(2, at(20)).unwrap();
    assert_eq!(line.push_back(3, at(30)), Err(LineFull { limit: 2 }));
    assert_eq!(line.push_front_since(3, at(5)), Err(LineFull { limit: 2 }));
    assert_eq!(items(&line), [1, 2]);
    line.remove(second);
    line.push_back(3, at(30)).unwrap();
    assert_eq!(items(&line), [1, 3]);
    assert_eq!(Line::<u32>::new(0).push_back(1, at(0)), Err(LineFull { limit: 0 }));
}

#[test]
fn a_lower_limit_puts_nobody_out_and_lets_nobody_in() {
    let (mut line, _) = line_of(&[(1, 10), (2, 20)]);
    line.set_limit(1);
    assert_eq!(items(&line), [1, 2]);
    line.pop_front();
    assert_eq!(line.push_back(3, at(30)), Err(LineFull { limit: 1 }));
    line.set_limit(2);
    line.push_back(3, at(30)).unwrap();
    assert_eq!(items(&line), [2, 3]);
}

#[test]
fn the_deadline_is_reached_at_the_limit_and_not_a_microsecond_before() {
    let (mut line, _) = line_of(&[(1, 10), (2, 20)]);
    assert_eq!(line.next_deadline(us(100)), Some(at(110)));
    assert_eq!(line.pop_expired(at(109), us(100)), None);
    assert_eq!(line.pop_expired(at(110), us(100)), Some((1, at(10))));
    assert_eq!(line.pop_expired(at(110), us(100)), None);
    assert_eq!(line.next_deadline(us(100)), Some(at(120)));
}

#[test]
fn a_shorter_limit_reaches_those_who_wait_already() {
    let (mut line, _) = line_of(&[(1, 10), (2, 20)]);
    assert_eq!(line.pop_expired(at(50), us(1_000_000)), None);
    assert_eq!(line.pop_expired(at(50), us(30)), Some((1, at(10))));
    assert_eq!(line.pop_expired(at(50), us(30)), Some((2, at(20))));
}

#[test]
fn a_limit_of_zero_never_expires_anyone() {
    let (mut line, _) = line_of(&[(1, 10)]);
    assert_eq!(line.next_deadline(Duration::ZERO), None);
    assert_eq!(line.pop_expired(at(u64::MAX), Duration::ZERO), None);
    assert_eq!(line.len(), 1);
}

#[test]
fn the_oldest_wait_counts_from_the_first_queueing() {
    let (mut line, _) = line_of(&[(1, 10), (2, 20)]);
    assert_eq!(line.oldest_wait(at(110)), us(100));
    line.pop_front();
    assert_eq!(line.oldest_wait(at(110)), us(90));
    line.push_front_since(1, at(10)).unwrap();
    assert_eq!(line.oldest_wait(at(110)), us(100));
    line.pop_front();
    line.pop_front();
    assert_eq!(line.oldest_wait(at(110)), Duration::ZERO);
}

#[test]
fn those_who_go_back_stand_by_their_first_queueing_whatever_order_they_return_in() {
    let (mut line, _) = line_of(&[(1, 10), (2, 20), (3, 30), (4, 40)]);
    let first = line.pop_front().unwrap();
    let second = line.pop_front().unwrap();
    line.push_front_since(first.0, first.1).unwrap();
    line.push_front_since(second.0, second.1).unwrap();
    assert_eq!(items(&line), [1, 2, 3, 4]);
    line.push_front_since(9, at(30)).unwrap();
    assert_eq!(items(&line), [1, 2, 9, 3, 4], "before those of the same moment");
    line.push_front_since(8, at(50)).unwrap();
    assert_eq!(items(&line), [1, 2, 9, 3, 4, 8]);
}

#[test]
fn a_clock_that_steps_back_does_not_disturb_the_order_of_deadlines() {
    let (line, _) = line_of(&[(1, 100), (2, 50), (3, 120)]);
    let moments: Vec<Moment> = line.iter().map(|(_, queued_at)| queued_at).collect();
    assert_eq!(moments, [at(100), at(100), at(120)]);
}

#[test]
fn a_warm_line_does_not_grow_and_an_empty_one_owns_nothing_after_a_shrink() {
    let mut line = Line::new(LIMIT);
    assert_eq!(line.memory_bytes(), 0);
    for item in 0..LIMIT as u32 {
        line.push_back(item, at(0)).unwrap();
    }
    let warm = line.memory_bytes();
    assert!(warm > 0);
    for round in 0..1_000 {
        line.pop_front();
        let ticket = line.push_back(round, at(1)).unwrap();
        line.remove(ticket);
        line.push_back(round, at(1)).unwrap();
    }
    assert_eq!(line.memory_bytes(), warm);
    line.shrink();
    assert_eq!(line.len(), LIMIT, "someone waits: nothing is given back");
    while line.pop_front().is_some() {}
    assert_eq!(line.memory_bytes(), warm);
    line.shrink();
    assert_eq!(line.memory_bytes(), 0);
}

#[test]
fn places_are_used_again_in_whatever_order_they_came_free() {
    let mut line = Line::new(LIMIT);
    let mut tickets: Vec<Ticket> =
        (0..LIMIT as u32).map(|item| line.push_back(item, at(0)).unwrap()).collect();
    let warm = line.memory_bytes();
    for round in 0..10 {
        tickets.rotate_left(round % 3);
        for ticket in tickets.drain(..) {
            line.remove(ticket).unwrap();
        }
        tickets.extend((0..LIMIT as u32).map(|item| line.push_back(item, at(0)).unwrap()));
    }
    assert_eq!(line.memory_bytes(), warm);
}

#[test]
fn limits_beyond_the_numbering_are_cut_to_it() {
    assert_eq!(Line::<u32>::new(usize::MAX).limit(), u32::MAX as usize);
}

#[derive(Clone, Debug)]
enum Step {
    Push,
    PushSince(u64),
    Pop,
    Remove(prop::sample::Index),
    Expire(u64),
    Pass(u64),
    Shrink,
    Notice(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Push),
        1 => (0_u64..200).prop_map(Step::PushSince),
        2 => Just(Step::Pop),
        2 => any::<prop::sample::Index>().prop_map(Step::Remove),
        2 => (0_u64..100).prop_map(Step::Expire),
        3 => (0_u64..50).prop_map(Step::Pass),
        1 => Just(Step::Shrink),
        3 => (0_u64..50).prop_map(Step::Notice),
    ]
}

#[test]
fn each_is_named_once_after_his_wait_and_those_who_left_are_not() {
    let (mut line, tickets) = line_of(&[(1, 10), (2, 20), (3, 30), (4, 40)]);
    assert_eq!(line.next_notice(us(5)), Some(at(15)));
    assert_eq!(line.take_notice(at(14), us(5)), None);
    assert_eq!(line.take_notice(at(15), us(5)), Some(1));
    line.remove(tickets[1]);
    assert_eq!(line.next_notice(us(5)), Some(at(35)));
    assert_eq!(line.pop_front(), Some((1, at(10))));
    assert_eq!(line.take_notice(at(50), us(5)), Some(3));
    assert_eq!(line.take_notice(at(50), us(0)), None, "zero names nobody");
    assert_eq!(line.take_notice(at(50), us(5)), Some(4));
    assert_eq!(line.take_notice(at(50), us(5)), None);
    assert_eq!(line.next_notice(us(5)), None);
    line.push_back(5, at(60)).unwrap();
    assert_eq!(line.next_notice(us(5)), Some(at(65)));
}

proptest! {
    #[test]
    fn a_line_behaves_like_a_sorted_queue(steps in prop::collection::vec(step(), 0..300)) {
        let mut line = Line::new(LIMIT);
        let mut model: VecDeque<(u32, u64)> = VecDeque::new();
        let mut tickets: Vec<(u32, Ticket)> = Vec::new();
        // Those who have not been named yet. Who goes back counts as named, unless he stands behind one of them.
        let mut joined_behind: Vec<u32> = Vec::new();
        let mut now = 1_000_u64;
        for (number, step) in (0_u32..).zip(steps) {
            match step {
                Step::Push => {
                    let joined = line.push_back(number, at(now));
                    prop_assert_eq!(joined.is_ok(), model.len() < LIMIT);
                    if let Ok(ticket) = joined {
                        tickets.push((number, ticket));
                        model.push_back((number, now));
                        joined_behind.push(number);
                    }
                }
                Step::PushSince(ago) => {
                    let joined = line.push_front_since(number, at(now - ago));
                    prop_assert_eq!(joined.is_ok(), model.len() < LIMIT);
                    if let Ok(ticket) = joined {
                        tickets.push((number, ticket));
                        let place = model.iter().take_while(|(_, queued)| *queued < now - ago).count();
                        if place > 0 && joined_behind.contains(&model[place - 1].0) {
                            joined_behind.push(number);
                        }
                        model.insert(place, (number, now - ago));
                    }
                }
                Step::Pop => {
                    let expected = model.pop_front().map(|(item, queued)| (item, at(queued)));
                    prop_assert_eq!(line.pop_front(), expected);
                }
                Step::Remove(which) => {
                    if !tickets.is_empty() {
                        let (item, ticket) = tickets[which.index(tickets.len())];
                        let place = model.iter().position(|(other, _)| *other == item);
                        let expected = place.and_then(|place| model.remove(place)).map(|(item, _)| item);
                        prop_assert_eq!(line.remove(ticket), expected);
                    }
                }
                Step::Expire(limit) => {
                    let due = model.front().is_some_and(|(_, queued)| limit > 0 && queued + limit <= now);
                    let expected = if due { model.pop_front() } else { None };
                    let expected = expected.map(|(item, queued)| (item, at(queued)));
                    prop_assert_eq!(line.pop_expired(at(now), us(limit)), expected);
                }
                Step::Pass(span) => now += span,
                Step::Shrink => line.shrink(),
                Step::Notice(limit) => {
                    let is_due = |queued: u64| limit > 0 && queued + limit <= now;
                    let next = model.iter().find(|(item, _)| joined_behind.contains(item));
                    let expected = next.filter(|(_, queued)| is_due(*queued)).map(|(item, _)| *item);
                    let named = line.take_notice(at(now), us(limit));
                    prop_assert_eq!(named, expected);
                    if let Some(item) = named {
                        joined_behind.retain(|other| *other != item);
                    }
                }
            }
            let entries: Vec<(u32, u64)> =
                line.iter().map(|(item, queued_at)| (*item, queued_at.as_micros())).collect();
            prop_assert_eq!(&entries, &Vec::from(model.clone()));
            prop_assert_eq!(line.len(), model.len());
            prop_assert_eq!(line.oldest_wait(at(now)), us(model.front().map_or(0, |(_, queued)| now - queued)));
        }
    }
}
