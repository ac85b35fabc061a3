//! Who may take how much.

use crate::lane::{LANES, Lane};

/// Tasks that one worker runs at once: the guaranteed places, and a few that whoever has more to do shares.
pub const SLOTS: usize = 16;

/// The places of one worker.
#[derive(Clone, Debug)]
pub struct Shares {
    running: [usize; LANES],
    /// It got as much as it asked for the last time: it may have more.
    hungry: [bool; LANES],
    /// Which lane is served first from what is shared.
    turn: usize,
}

impl Default for Shares {
    fn default() -> Self {
        Self { running: [0; LANES], hungry: [true; LANES], turn: 0 }
    }
}

impl Shares {
    /// How many tasks of each lane to claim now. A guaranteed place is never lent, so a lane never waits for another's work; the
    /// others are shared evenly among those that have more to do.
    #[must_use]
    pub fn wanted(&self) -> [usize; LANES] {
        let mut wanted = [0; LANES];
        let mut shared = self.shared_free();
        for lane in Lane::ALL {
            wanted[lane.index()] = lane.guaranteed().saturating_sub(self.running[lane.index()]);
        }
        let order = || (0..LANES).map(|step| (self.turn + step) % LANES);
        while shared > 0 && order().any(|lane| self.hungry[lane]) {
            for lane in order().filter(|lane| self.hungry[*lane]) {
                if shared > 0 {
                    wanted[lane] += 1;
                    shared -= 1;
                }
            }
        }
        wanted
    }

    /// So many of each were claimed, of those that [`Shares::wanted`] asked for. Whether there may be more for a free place.
    pub fn claimed(&mut self, wanted: [usize; LANES], claimed: [usize; LANES]) -> bool {
        for lane in 0..LANES {
            self.running[lane] += claimed[lane];
            if wanted[lane] > 0 {
                self.hungry[lane] = claimed[lane] >= wanted[lane];
            }
        }
        self.turn = (self.turn + 1) % LANES;
        let next = self.wanted();
        (0..LANES).any(|lane| self.hungry[lane] && next[lane] > 0)
    }

    /// One of this lane has ended.
    pub fn ended(&mut self, lane: Lane) {
        let running = &mut self.running[lane.index()];
        *running = running.saturating_sub(1);
    }

    /// Everybody may have something to do again.
    pub fn look_again(&mut self) {
        self.hungry = [true; LANES];
    }

    /// How many run.
    #[must_use]
    pub fn running(&self) -> usize {
        self.running.iter().sum()
    }

    fn shared_free(&self) -> usize {
        let kept: usize =
            Lane::ALL.iter().map(|lane| lane.guaranteed().max(self.running[lane.index()])).sum();
        SLOTS.saturating_sub(kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Claims from queues of these lengths.
    fn claim(shares: &mut Shares, waiting: &mut [usize; LANES]) -> [usize; LANES] {
        let wanted = shares.wanted();
        let claimed = std::array::from_fn(|lane| wanted[lane].min(waiting[lane]));
        for lane in 0..LANES {
            waiting[lane] -= claimed[lane];
        }
        shares.claimed(wanted, claimed);
        claimed
    }

    #[test]
    fn a_lane_that_floods_leaves_the_others_their_places() {
        let mut shares = Shares::default();
        let mut waiting = [0, 0, 0, 0, 1_000_000];
        for _ in 0..10 {
            claim(&mut shares, &mut waiting);
        }
        assert_eq!(shares.running(), SLOTS - 10, "all but the guaranteed places of four lanes");
        let mut late = [100, 0, 0, 100, 0];
        assert_eq!(claim(&mut shares, &mut late)[..4], [4, 0, 0, 2]);
        assert!(shares.running() <= SLOTS);
    }

    #[test]
    fn what_is_shared_goes_evenly_to_those_that_have_more_to_do() {
        let mut shares = Shares::default();
        let mut waiting = [100, 0, 0, 100, 0];
        for _ in 0..5 {
            claim(&mut shares, &mut waiting);
        }
        let (ledger, upkeep) = (100 - waiting[0], 100 - waiting[3]);
        assert_eq!(ledger + upkeep, SLOTS - 5, "{ledger} {upkeep}");
        assert!(ledger - 4 >= 2 && upkeep - 2 >= 2, "{ledger} {upkeep}");
    }

    proptest! {
        /// Whatever comes and ends: never more than the places, and a lane with work gets its guaranteed ones at once.
        #[test]
        fn no_more_than_the_places_and_no_lane_below_its_share(
            steps in proptest::collection::vec((proptest::array::uniform5(0_usize..30), 0_usize..LANES), 1..100)
        ) {
            let mut shares = Shares::default();
            let mut waiting = [0; LANES];
            for (more, ending) in steps {
                for lane in 0..LANES {
                    waiting[lane] += more[lane];
                }
                shares.look_again();
                claim(&mut shares, &mut waiting);
                prop_assert!(shares.running() <= SLOTS);
                for lane in Lane::ALL {
                    let index = lane.index();
                    prop_assert!(waiting[index] == 0 || shares.running[index] >= lane.guaranteed());
                }
                while shares.running[ending] > 0 {
                    shares.ended(Lane::ALL[ending]);
                }
            }
        }
    }
}
