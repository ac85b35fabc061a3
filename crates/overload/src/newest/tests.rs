use super::*;
use crate::{Line, Moment};

#[test]
fn the_newest_that_still_waits_comes_first() {
    let mut line: Line<u32> = Line::new(9);
    let mut newest = Newest::new();
    let tickets: Vec<Ticket> =
        (1..=4).map(|item| line.push_back(item, Moment::from_micros(u64::from(item))).unwrap()).collect();
    for &ticket in &tickets {
        newest.push(ticket, line.len(), |ticket| line.entry(*ticket).is_some());
    }
    line.remove(tickets[3]);
    line.remove(tickets[1]);
    let mut order = Vec::new();
    while let Some(ticket) = newest.pop(|ticket| line.entry(*ticket).is_some()) {
        order.extend(line.remove(ticket));
    }
    assert_eq!(order, [3, 1]);
    assert!(newest.is_empty());
}

#[test]
fn tickets_of_people_who_have_left_do_not_pile_up() {
    let mut line: Line<u32> = Line::new(9);
    let mut newest = Newest::new();
    let stays = line.push_back(0, Moment::ORIGIN).unwrap();
    newest.push(stays, 1, |_| true);
    for item in 1..10_000 {
        let ticket = line.push_back(item, Moment::ORIGIN).unwrap();
        newest.push(ticket, line.len(), |ticket| line.entry(*ticket).is_some());
        line.remove(ticket);
    }
    assert!(newest.len() <= 2 * 2 + SLACK, "{}", newest.len());
    assert_eq!(newest.pop(|ticket| line.entry(*ticket).is_some()), Some(stays));
}
