//! When requests are meant to come: a fixed schedule, with seeded jitter.

use std::time::Duration;

/// From a moment on, so many requests a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phase {
    /// Since the beginning of the load.
    pub from: Duration,
    /// Requests a second; 0: none.
    pub rate_per_s: f64,
}

/// Requests are meant in slots of 1/rate, each at a random moment of its slot: the rate is exact over any second, and
/// neighbours still collide as independent callers do.
#[derive(Debug)]
pub(super) struct Schedule {
    phases: Vec<Phase>,
    random: fastrand::Rng,
    slot_s: f64,
}

impl Schedule {
    pub(super) fn new(phases: &[Phase], seed: u64) -> Self {
        Self { phases: phases.to_vec(), random: fastrand::Rng::with_seed(seed), slot_s: 0.0 }
    }

    fn phase(&self, at_s: f64) -> (f64, Option<f64>) {
        let next = self.phases.iter().position(|phase| phase.from.as_secs_f64() > at_s);
        let current = next.unwrap_or(self.phases.len()).checked_sub(1);
        let rate = current.and_then(|index| self.phases.get(index)).map_or(0.0, |phase| phase.rate_per_s);
        let until = next.and_then(|index| self.phases.get(index)).map(|phase| phase.from.as_secs_f64());
        (rate, until)
    }
}

impl Iterator for Schedule {
    type Item = Duration;

    /// The next arrival; none when no later phase has any.
    fn next(&mut self) -> Option<Duration> {
        // Each round passes a phase that has no request left.
        for _ in 0..=self.phases.len() {
            let (rate, until) = self.phase(self.slot_s);
            let width = 1.0 / rate;
            if rate > 0.0 && until.is_none_or(|until| self.slot_s + width <= until + 1e-9) {
                let at = self.slot_s + width * self.random.f64();
                self.slot_s += width;
                return Some(Duration::from_secs_f64(at));
            }
            self.slot_s = until?;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(from_s: u64, rate_per_s: f64) -> Phase {
        Phase { from: Duration::from_secs(from_s), rate_per_s }
    }

    #[test]
    fn the_rate_of_each_phase_is_exact_and_its_seed_decides_all() {
        let phases = [phase(0, 100.0), phase(2, 300.0), phase(3, 0.0), phase(5, 50.0)];
        let arrivals: Vec<Duration> = Schedule::new(&phases, 7).take(600).collect();
        let between =
            |from: f64, to: f64| arrivals.iter().filter(|at| (from..to).contains(&at.as_secs_f64())).count();
        assert_eq!(
            [between(0.0, 1.0), between(1.0, 2.0), between(2.0, 3.0), between(3.0, 5.0), between(5.0, 6.0)],
            [100, 100, 300, 0, 50]
        );
        assert!(arrivals.is_sorted());
        assert_eq!(arrivals, Schedule::new(&phases, 7).take(600).collect::<Vec<_>>());
        assert_ne!(arrivals, Schedule::new(&phases, 8).take(600).collect::<Vec<_>>());
    }

    #[test]
    fn a_load_that_ends_has_no_further_arrival() {
        assert_eq!(Schedule::new(&[phase(0, 10.0), phase(1, 0.0)], 1).count(), 10);
        assert_eq!(Schedule::new(&[], 1).count(), 0);
    }
}
