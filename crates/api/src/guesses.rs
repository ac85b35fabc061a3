//! Wrong guesses of codes and passwords, counted by who makes them.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;

/// Wrong guesses within [`WINDOW_MS`] after which one has to wait.
pub(crate) const MOST_WRONG: u32 = 10;
/// How long wrong guesses count, ms.
pub(crate) const WINDOW_MS: u64 = 600_000;
/// Guessers that are remembered; beyond that the one that began first is forgotten.
pub(crate) const MOST_GUESSERS: usize = 10_000;

/// Who guesses: an address, or for IPv6 the network of a customer (64 bits).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Neighbourhood(u128);

impl From<IpAddr> for Neighbourhood {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self(u128::from(address.to_bits())),
            IpAddr::V6(address) => Self(address.to_bits() >> 64 << 64),
        }
    }
}

/// A count for each guesser.
#[derive(Debug)]
pub(crate) struct Guesses<K> {
    wrong: HashMap<K, Wrong>,
}

#[derive(Clone, Copy, Debug)]
struct Wrong {
    count: u32,
    since_ms: u64,
}

impl<K> Default for Guesses<K> {
    fn default() -> Self {
        Self { wrong: HashMap::new() }
    }
}

impl<K: Copy + Eq + Hash> Guesses<K> {
    /// How long this guesser has to wait, ms; `None`: it may guess.
    pub(crate) fn wait_ms(&self, guesser: &K, now_ms: u64) -> Option<u64> {
        let wrong = self.wrong.get(guesser)?;
        let end_ms = wrong.since_ms + WINDOW_MS;
        (wrong.count >= MOST_WRONG && now_ms < end_ms).then(|| end_ms - now_ms)
    }

    /// It guessed wrong.
    pub(crate) fn note_wrong(&mut self, guesser: K, now_ms: u64) {
        if self.wrong.len() >= MOST_GUESSERS && !self.wrong.contains_key(&guesser) {
            self.make_room(now_ms);
        }
        let wrong = self.wrong.entry(guesser).or_insert(Wrong { count: 0, since_ms: now_ms });
        if now_ms >= wrong.since_ms + WINDOW_MS {
            *wrong = Wrong { count: 0, since_ms: now_ms };
        }
        wrong.count = wrong.count.saturating_add(1);
    }

    /// It guessed right: what was wrong before is forgotten.
    pub(crate) fn note_right(&mut self, guesser: &K) {
        self.wrong.remove(guesser);
    }

    fn make_room(&mut self, now_ms: u64) {
        self.wrong.retain(|_, wrong| now_ms < wrong.since_ms + WINDOW_MS);
        if self.wrong.len() >= MOST_GUESSERS {
            let oldest =
                self.wrong.iter().min_by_key(|(_, wrong)| wrong.since_ms).map(|(guesser, _)| *guesser);
            if let Some(guesser) = oldest {
                self.wrong.remove(&guesser);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_eleventh_guess_waits_until_the_first_wrong_one_is_ten_minutes_old() {
        let mut guesses = Guesses::default();
        for n in 0..MOST_WRONG {
            assert_eq!(guesses.wait_ms(&1, u64::from(n)), None);
            guesses.note_wrong(1, u64::from(n));
        }
        assert_eq!(guesses.wait_ms(&1, 1_000), Some(WINDOW_MS - 1_000));
        assert_eq!(guesses.wait_ms(&2, 1_000), None);
        assert_eq!(guesses.wait_ms(&1, WINDOW_MS), None);
        guesses.note_wrong(1, WINDOW_MS);
        assert_eq!(guesses.wait_ms(&1, WINDOW_MS), None, "the count begins anew");
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_goes_first() {
        let mut guesses = Guesses::default();
        for guesser in 0..MOST_GUESSERS as u64 + 5 {
            for _ in 0..MOST_WRONG {
                guesses.note_wrong(guesser, guesser);
            }
        }
        assert_eq!(guesses.wrong.len(), MOST_GUESSERS);
        assert_eq!(guesses.wait_ms(&0, MOST_GUESSERS as u64 + 5), None);
        assert!(guesses.wait_ms(&(MOST_GUESSERS as u64), MOST_GUESSERS as u64 + 5).is_some());
    }

    #[test]
    fn all_addresses_of_one_ipv6_network_are_one_guesser() {
        let of = |text: &str| Neighbourhood::from(text.parse::<IpAddr>().unwrap());
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    }
}
