//! One of those that answer: for a session the greatest in its rendezvous, else the cheaper of two drawn at random.

use overload::Moment;

use crate::candidate::{Candidate, Pool, Snapshot};
use crate::options::Options;
use crate::selector::NoCandidate;

/// Draws before the whole pool is looked through.
const DRAWS: usize = 8;

/// What is known about a candidate besides the list.
pub(crate) type Judge<'judge> = &'judge dyn Fn(&Candidate) -> Verdict;

/// Whether a candidate can be taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// Yes, at this cost.
    Cost(f64),
    /// Not until then.
    Rests(Moment),
    /// It has been tried for this very stream.
    Tried,
}

/// The cheaper of two drawn at random among those that answer `options`.
pub(crate) fn cheaper_of_two<'list>(
    list: &'list Snapshot,
    options: &Options,
    judge: Judge<'_>,
    random: &mut fastrand::Rng,
    now: Moment,
) -> Result<&'list Candidate, NoCandidate> {
    let pool = list.pool(options);
    let count = pool.len();
    let mut first: Option<(usize, &Candidate, f64)> = None;
    if count > 2 {
        for _ in 0..DRAWS {
            let place = random.usize(..count);
            let Some(candidate) = at(list, &pool, place, options) else { continue };
            let Verdict::Cost(cost) = judge(candidate) else { continue };
            match first {
                Some((other, ..)) if other == place => {}
                Some((_, cheaper, least)) if least <= cost => return Ok(cheaper),
                Some(_) => return Ok(candidate),
                None => first = Some((place, candidate, cost)),
            }
        }
    }
    look_through(list, options, judge, now, &mut |_, cost| (-cost, random.u64(..)))
}

/// The candidate with the greatest weight.
pub(crate) fn greatest<'list>(
    list: &'list Snapshot,
    options: &Options,
    judge: Judge<'_>,
    weight: impl Fn(&Candidate) -> u64,
    now: Moment,
) -> Result<&'list Candidate, NoCandidate> {
    look_through(list, options, judge, now, &mut |candidate, _| (0.0, weight(candidate)))
}

/// All that answer, one by one; and why there is none.
fn look_through<'list>(
    list: &'list Snapshot,
    options: &Options,
    judge: Judge<'_>,
    now: Moment,
    rank: &mut dyn FnMut(&Candidate, f64) -> (f64, u64),
) -> Result<&'list Candidate, NoCandidate> {
    let pool = list.pool(options);
    let mut best: Option<(&Candidate, (f64, u64))> = None;
    let mut soonest: Option<Moment> = None;
    let mut any = false;
    for place in 0..pool.len() {
        let Some(candidate) = at(list, &pool, place, options) else { continue };
        any = true;
        match judge(candidate) {
            Verdict::Tried => {}
            Verdict::Rests(until) => soonest = Some(soonest.map_or(until, |soonest| soonest.min(until))),
            Verdict::Cost(cost) => {
                let rank = rank(candidate, cost);
                if best.is_none_or(|(_, best)| best < rank) {
                    best = Some((candidate, rank));
                }
            }
        }
    }
    match (best, soonest) {
        (Some((candidate, _)), _) => Ok(candidate),
        (None, Some(until)) => Err(NoCandidate::Resting { retry_after: until.since(now) }),
        (None, None) if any => Err(NoCandidate::AllTried),
        (None, None) => Err(NoCandidate::NoneKnown),
    }
}

fn at<'list>(
    list: &'list Snapshot,
    pool: &Pool<'_>,
    place: usize,
    options: &Options,
) -> Option<&'list Candidate> {
    let candidate = pool.get(place).and_then(|index| list.at(index));
    candidate.filter(|candidate| candidate.answers(options))
}
