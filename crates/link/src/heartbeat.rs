//! When to ask a silent peer, and when to give it up (§3).

use overload::Moment;
use std::time::Duration;

/// The interval is spread by this share of it, so that a fleet that connected at once does not ping at once.
const SPREAD_PERCENT: u64 = 20;

/// What is to be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beat {
    /// Nothing before this moment.
    Wait(Moment),
    /// Send PING.
    Ping,
    /// The peer is gone.
    GiveUp,
}

/// The silence of one peer.
#[derive(Clone, Copy, Debug)]
pub struct Heartbeat {
    interval: Duration,
    misses: u8,
    heard_at: Moment,
    pings: u8,
    /// The first ping since then.
    asked_at: Option<Moment>,
}

impl Heartbeat {
    /// `interval` between pings of a silent peer, `misses` unanswered ones before it is given up, any number for `jitter`.
    #[must_use]
    pub fn new(interval: Duration, misses: u8, jitter: u64, now: Moment) -> Self {
        let spread = jitter % (2 * SPREAD_PERCENT + 1);
        let interval = interval * u32::try_from(100 - SPREAD_PERCENT + spread).unwrap_or(100) / 100;
        Self {
            interval: interval.max(Duration::from_millis(1)),
            misses: misses.max(1),
            heard_at: now,
            pings: 0,
            asked_at: None,
        }
    }

    /// Any byte came.
    pub const fn heard(&mut self, now: Moment) {
        self.heard_at = now;
        self.pings = 0;
        self.asked_at = None;
    }

    /// Whoever waits for this peer wants to know now whether it is there. Whether PING is to be sent: not if one is out already.
    pub const fn ask(&mut self, now: Moment) -> bool {
        let asks = self.asked_at.is_none();
        if asks {
            self.asked_at = Some(now);
        }
        asks
    }

    /// For how long a ping has been without a sign of life; none: none is.
    #[must_use]
    pub fn unanswered_for(&self, now: Moment) -> Option<Duration> {
        self.asked_at.map(|asked_at| now.since(asked_at))
    }

    /// Since the last byte.
    #[must_use]
    pub fn silent_for(&self, now: Moment) -> Duration {
        now.since(self.heard_at)
    }

    /// What is to be done now. After [`Beat::Ping`], the ping counts as sent.
    pub fn tick(&mut self, now: Moment) -> Beat {
        let due = self.heard_at + self.interval * (u32::from(self.pings) + 1);
        if now < due {
            return Beat::Wait(due);
        }
        if self.pings >= self.misses {
            return Beat::GiveUp;
        }
        self.pings += 1;
        let _ = self.ask(now);
        Beat::Ping
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Moment {
        Moment::from_micros(ms * 1_000)
    }

    #[test]
    fn a_silent_peer_is_asked_and_then_given_up() {
        let mut heartbeat = Heartbeat::new(Duration::from_secs(45), 2, 20, at(0));
        assert_eq!(heartbeat.tick(at(44_999)), Beat::Wait(at(45_000)));
        assert_eq!(heartbeat.tick(at(45_000)), Beat::Ping);
        assert_eq!(heartbeat.tick(at(45_000)), Beat::Wait(at(90_000)));
        assert_eq!(heartbeat.tick(at(90_000)), Beat::Ping);
        assert_eq!(heartbeat.tick(at(135_000)), Beat::GiveUp);
    }

    #[test]
    fn any_byte_is_a_sign_of_life() {
        let mut heartbeat = Heartbeat::new(Duration::from_secs(45), 1, 20, at(0));
        assert_eq!(heartbeat.tick(at(45_000)), Beat::Ping);
        heartbeat.heard(at(46_000));
        assert_eq!(heartbeat.tick(at(90_000)), Beat::Wait(at(91_000)));
        assert_eq!(heartbeat.tick(at(91_000)), Beat::Ping);
    }

    #[test]
    fn who_wants_to_know_now_asks_once_and_any_byte_is_an_answer() {
        let mut heartbeat = Heartbeat::new(Duration::from_secs(45), 2, SPREAD_PERCENT, at(0));
        assert_eq!(heartbeat.unanswered_for(at(1_000)), None);
        assert!(heartbeat.ask(at(1_000)));
        assert!(!heartbeat.ask(at(2_000)), "one is out");
        assert_eq!(heartbeat.unanswered_for(at(3_000)), Some(Duration::from_secs(2)));
        assert_eq!(heartbeat.tick(at(3_000)), Beat::Wait(at(45_000)), "its own beats are as they were");
        heartbeat.heard(at(3_000));
        assert_eq!(heartbeat.unanswered_for(at(9_000)), None);
        assert_eq!(heartbeat.tick(at(48_000)), Beat::Ping);
        assert_eq!(heartbeat.unanswered_for(at(49_000)), Some(Duration::from_secs(1)));
    }

    #[test]
    fn a_fleet_that_came_at_once_does_not_ping_at_once() {
        let mut dues: Vec<u64> = Vec::new();
        for jitter in 0..41 {
            let mut heartbeat = Heartbeat::new(Duration::from_secs(100), 2, jitter, at(0));
            let Beat::Wait(due) = heartbeat.tick(at(0)) else { panic!("it is too early") };
            dues.push(due.as_micros() / 1_000_000);
        }
        assert_eq!((dues[0], dues[40]), (80, 120));
    }
}
