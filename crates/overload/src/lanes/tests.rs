use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;

fn at(micros: u64) -> Moment {
    Moment::from_micros(micros)
}

fn us(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

fn share(weight: u32, share_percent: u32) -> LaneShare {
    LaneShare { weight, share_percent }
}

/// The item says its lane.
fn lanes_of(shares: &[LaneShare]) -> Lanes<u8> {
    let mut lanes = Lanes::new(usize::MAX);
    assert!(lanes.reshape(shares).is_empty());
    lanes
}

fn fill(lanes: &mut Lanes<u8>, lane: u8, count: usize) {
    for _ in 0..count {
        lanes.push_back(lane, lane, at(1)).unwrap();
    }
}

/// Whom `turns` free servers in a row go to, while nobody holds one.
fn turns(lanes: &mut Lanes<u8>, turns: usize) -> Vec<u8> {
    std::iter::from_fn(|| lanes.pop_next(10)).take(turns).map(|(lane, _)| lane).collect()
}

fn count_of(lane: u8, served: &[u8]) -> usize {
    served.iter().filter(|&&one| one == lane).count()
}

#[test]
fn one_lane_is_first_come_first_served() {
    let mut lanes = Lanes::new(2);
    lanes.push_back(0, 1, at(1)).unwrap();
    // A lane that is not there is the first.
    lanes.push_back(7, 2, at(2)).unwrap();
    assert_eq!(lanes.push_back(0, 3, at(3)), Err(LineFull { limit: 2 }));
    assert_eq!(lanes.pop_next(1), Some((1, at(1))));
    assert_eq!(lanes.pop_next(1), Some((2, at(2))));
    assert_eq!(lanes.pop_next(1), None);
}

#[test]
fn no_more_lanes_than_the_greatest_number() {
    let lanes = lanes_of(&[LaneShare::PLAIN; MAX_LANES + 3]);
    assert_eq!(lanes.count(), MAX_LANES);
}

#[test]
fn turns_are_in_the_ratio_of_the_weights() {
    let mut lanes = lanes_of(&[share(1, 0), share(3, 0)]);
    fill(&mut lanes, 0, 100);
    fill(&mut lanes, 1, 100);
    let served = turns(&mut lanes, 40);
    assert_eq!(count_of(1, &served), 30);
}

#[test]
fn a_lane_that_was_idle_has_saved_up_no_turns() {
    let mut lanes = lanes_of(&[share(1, 0), share(1, 0)]);
    fill(&mut lanes, 0, 200);
    turns(&mut lanes, 100);
    fill(&mut lanes, 1, 50);
    let served = turns(&mut lanes, 20);
    assert_eq!(count_of(1, &served), 10, "turn by turn from now on");
}

#[test]
fn a_lane_below_its_guarantee_comes_before_any_weight_and_above_it_counts_by_weight() {
    let mut lanes = lanes_of(&[share(1_000, 0), share(1, 20)]);
    fill(&mut lanes, 0, 100);
    fill(&mut lanes, 1, 100);
    for held in 0..2 {
        assert_eq!(lanes.pop_next(10).unwrap().0, 1, "it holds {held} of two");
        lanes.hold(1);
    }
    // Two of ten are its own; a thousand turns of the other come for each that it has beyond.
    let served = turns(&mut lanes, 50);
    assert!(count_of(1, &served) <= 1, "{served:?}");
    lanes.release(1);
    assert_eq!(lanes.pop_next(10).unwrap().0, 1);
}

#[test]
fn of_several_below_their_guarantee_the_one_that_lacks_most_comes_first() {
    let mut lanes = lanes_of(&[share(1, 0), share(1, 50), share(1, 20)]);
    fill(&mut lanes, 1, 10);
    fill(&mut lanes, 2, 10);
    // Three of five are missing, and two of two.
    lanes.hold(1);
    lanes.hold(1);
    assert_eq!(lanes.pop_next(10).unwrap().0, 2);
}

#[test]
fn a_share_of_less_than_one_server_counts_by_weight_alone() {
    assert_eq!(share(1, 90).guaranteed(1), 0);
    assert_eq!(share(1, 50).guaranteed(2), 1);
    assert_eq!(share(1, 900).guaranteed(usize::MAX / 200), usize::MAX / 200);
}

#[test]
fn deadlines_and_notices_are_those_of_the_first_in_any_lane() {
    let mut lanes = lanes_of(&[LaneShare::PLAIN; 3]);
    lanes.push_back(2, 2, at(10)).unwrap();
    lanes.push_back(0, 0, at(20)).unwrap();
    let ticket = lanes.push_back(1, 1, at(5)).unwrap();
    assert_eq!(lanes.next_deadline(us(100)), Some(at(105)));
    assert_eq!(lanes.entry(ticket), Some((&1, at(5))));
    assert_eq!(lanes.take_notice(at(110), us(100)), Some(1));
    assert_eq!(lanes.remove(ticket), Some(1));
    assert_eq!(lanes.remove(ticket), None);
    assert_eq!(lanes.pop_expired(at(109), us(100)), None);
    assert_eq!(lanes.pop_expired(at(110), us(100)), Some((2, at(10))));
    assert_eq!(lanes.oldest_wait(at(50)), us(30));
    assert_eq!(lanes.count_while(10, |queued_at| queued_at <= at(20)), 1);
    assert_eq!((lanes.len(), lanes.is_empty()), (1, false));
}

#[test]
fn other_lanes_lose_nobody_and_keep_the_order_of_coming() {
    let mut lanes = lanes_of(&[LaneShare::PLAIN; 2]);
    lanes.push_back(0, 10, at(3)).unwrap();
    lanes.push_back(1, 11, at(1)).unwrap();
    lanes.push_back(0, 12, at(4)).unwrap();
    lanes.push_back(1, 13, at(2)).unwrap();
    let waiting = lanes.reshape(&[LaneShare::PLAIN]);
    assert_eq!(waiting, [(11, at(1)), (13, at(2)), (10, at(3)), (12, at(4))]);
    assert!(lanes.is_empty());
}

/// A pool of `servers`, each busy for a while, and arrivals in any order.
#[derive(Debug)]
struct Pool {
    lanes: Lanes<u8>,
    shares: Vec<LaneShare>,
    /// Who uses each server, and for how many steps still.
    servers: Vec<Option<(u8, u32)>>,
    /// Steps since a lane that waits below its guarantee was last served.
    starved: Vec<u32>,
    model: Vec<VecDeque<u64>>,
}

impl Pool {
    fn step(&mut self, now: u64, arrivals: &[u8], spans: &[u32]) -> Result<(), TestCaseError> {
        for (&lane, _) in arrivals.iter().zip(0..) {
            let lane = lane % self.shares.len() as u8;
            self.lanes.push_back(lane, lane, at(now)).unwrap();
            self.model[usize::from(lane)].push_back(now);
        }
        for server in &mut self.servers {
            if let Some((lane, left)) = server {
                *left -= 1;
                if *left == 0 {
                    self.lanes.release(*lane);
                    *server = None;
                }
            }
        }
        let count = self.servers.len();
        for server in self.servers.iter_mut().filter(|server| server.is_none()) {
            let held: Vec<usize> = self.lanes.standing().map(|lane| lane.held).collect();
            let lacks = |lane: usize| held[lane] < self.shares[lane].guaranteed(count);
            let must: Vec<usize> =
                (0..held.len()).filter(|&lane| lacks(lane) && !self.model[lane].is_empty()).collect();
            let Some((lane, queued_at)) = self.lanes.pop_next(count) else {
                prop_assert!(self.model.iter().all(VecDeque::is_empty), "work-conserving");
                break;
            };
            let first = self.model[usize::from(lane)].pop_front();
            prop_assert_eq!(first, Some(queued_at.as_micros()), "within a lane, first come first served");
            prop_assert!(must.is_empty() || must.contains(&usize::from(lane)), "a guarantee comes first");
            self.lanes.hold(lane);
            *server = Some((lane, 1 + spans[usize::from(lane) % spans.len()]));
            self.starved[usize::from(lane)] = 0;
        }
        for (lane, starved) in self.starved.iter_mut().enumerate() {
            *starved = if self.model[lane].is_empty() { 0 } else { *starved + 1 };
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever comes in whatever order: a lane with a guarantee is served first, no lane starves, no server rests while
    /// somebody waits, and each lane is in order.
    #[test]
    fn no_lane_starves_and_no_server_rests(
        weights in prop::collection::vec(1_u32..20, 2..5),
        percents in prop::collection::vec(0_u32..30, 4),
        servers in 1_usize..12,
        spans in prop::collection::vec(1_u32..8, 1..4),
        arrivals in prop::collection::vec(prop::collection::vec(0_u8..8, 0..20), 200),
    ) {
        let shares: Vec<_> = weights.iter().zip(&percents).take(3).map(|(&w, &p)| share(w, p)).collect();
        let count = shares.len();
        let mut pool = Pool {
            lanes: lanes_of(&shares),
            shares,
            servers: vec![None; servers],
            starved: vec![0; count],
            model: vec![VecDeque::new(); count],
        };
        // Each of the other lanes has at most twenty turns for one of mine, each of at most nine steps.
        let patience = 9 * (1 + 20 * count as u32) + 1;
        for (now, arrivals) in (1..).zip(&arrivals) {
            pool.step(now, arrivals, &spans)?;
            prop_assert!(pool.starved.iter().all(|&starved| starved <= patience), "{:?}", pool.starved);
        }
    }

    /// While all lanes wait, each has its part of the turns to within one turn.
    #[test]
    fn the_ratio_of_the_weights_is_kept(weights in prop::collection::vec(1_u32..=1_000, 2..=MAX_LANES), rounds in 1_usize..4) {
        let shares: Vec<_> = weights.iter().map(|&weight| share(weight, 0)).collect();
        let mut lanes = lanes_of(&shares);
        let total: usize = weights.iter().map(|&weight| weight as usize).sum();
        let served = (total * rounds).min(3_000);
        for (lane, &weight) in (0_u8..).zip(&weights) {
            fill(&mut lanes, lane, (weight as usize * rounds + 2).min(3_001));
        }
        let mut counts = vec![0_usize; weights.len()];
        for _ in 0..served {
            counts[usize::from(lanes.pop_next(1).unwrap().0)] += 1;
        }
        for (&count, &weight) in counts.iter().zip(&weights) {
            let due = served as f64 * f64::from(weight) / total as f64;
            // Stride scheduling of many lanes errs by no more than their number.
            prop_assert!((count as f64 - due).abs() <= weights.len() as f64, "{count} of {due}");
        }
    }
}
