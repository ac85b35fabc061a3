//! Where providers have moved to since the list was made: laid over the list when it is read. A relay has said so (MOVED), because the
//! provider is at another relay now, or has started anew.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use overload::Moment;
use uuid::Uuid;

/// The most that are remembered; the one that was noted first makes room.
pub(crate) const MAX_MOVED: usize = 20_000;

/// What was heard longer ago is heard again.
pub(crate) const REMEMBERED: Duration = Duration::from_secs(10 * 60);

/// A relay, and a start of the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) relay: Arc<str>,
    pub(crate) epoch: u64,
}

#[derive(Debug)]
struct Move {
    /// What the list said: another list is believed again.
    listed: Place,
    now: Place,
    noted_at: Moment,
    number: u64,
}

/// Moves that are remembered.
#[derive(Debug, Default)]
pub(crate) struct Moved {
    moves: HashMap<Uuid, Move>,
    order: VecDeque<(Moment, u64, Uuid)>,
    noted: u64,
}

impl Moved {
    /// Where a provider has moved to that the list shows at `listed`.
    pub(crate) fn find(&self, provider: Uuid, listed: &Place, now: Moment) -> Option<Place> {
        let moved = self.moves.get(&provider)?;
        let holds = moved.listed == *listed && now.since(moved.noted_at) < REMEMBERED;
        holds.then(|| moved.now.clone())
    }

    /// It has moved.
    pub(crate) fn note(&mut self, provider: Uuid, listed: Place, to: Place, now: Moment) {
        self.noted += 1;
        let number = self.noted;
        self.moves.insert(provider, Move { listed, now: to, noted_at: now, number });
        self.order.push_back((now, number, provider));
        while let Some((noted_at, number, oldest)) = self.order.front().copied() {
            let is_old = now.since(noted_at) >= REMEMBERED;
            if self.order.len() <= MAX_MOVED && !is_old {
                return;
            }
            self.order.pop_front();
            // It may have been noted again since.
            if self.moves.get(&oldest).is_some_and(|moved| moved.number == number) {
                self.moves.remove(&oldest);
            }
        }
    }

    /// It is not there.
    pub(crate) fn forget(&mut self, provider: Uuid) {
        self.moves.remove(&provider);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(relay: &str, epoch: u64) -> Place {
        Place { relay: relay.into(), epoch }
    }

    fn at(seconds: u64) -> Moment {
        Moment::ORIGIN + Duration::from_secs(seconds)
    }

    #[test]
    fn a_move_holds_until_the_list_says_something_new_or_for_ten_minutes() {
        let (mut moved, provider) = (Moved::default(), Uuid::from_u128(1));
        let (listed, now) = (place("a:1", 5), place("b:1", 6));
        moved.note(provider, listed.clone(), now.clone(), at(0));
        assert_eq!(moved.find(provider, &listed, at(599)), Some(now));
        assert_eq!(moved.find(provider, &listed, at(600)), None);
        assert_eq!(moved.find(provider, &place("a:1", 7), at(1)), None);
        assert_eq!(moved.find(provider, &place("c:1", 5), at(1)), None);
        moved.forget(provider);
        assert_eq!(moved.find(provider, &listed, at(1)), None);
    }

    #[test]
    fn no_more_moves_are_remembered_than_there_may_be() {
        let mut moved = Moved::default();
        let listed = place("a:1", 1);
        for id in 0..MAX_MOVED as u128 + 100 {
            moved.note(Uuid::from_u128(id), listed.clone(), place("b:1", 2), at(1));
        }
        // One provider that moves again and again.
        for epoch in 0..MAX_MOVED as u64 * 2 {
            moved.note(Uuid::from_u128(7), listed.clone(), place("b:1", epoch), at(2));
        }
        assert!(moved.moves.len() <= MAX_MOVED && moved.order.len() <= MAX_MOVED);
        assert!(moved.find(Uuid::from_u128(7), &listed, at(2)).is_some());
        for id in 0..10 {
            moved.note(Uuid::from_u128(1 << 64 | id), listed.clone(), place("b:1", 2), at(1_000));
        }
        assert!(moved.moves.len() <= 10, "what is too old is forgotten");
    }
}
