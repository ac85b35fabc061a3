use std::collections::HashSet;

use super::*;
use crate::candidate::Country;
use crate::health::{FIRST_REST, GONE_AT_MOST, GONE_FIRST, GREATEST_REST, SUSTAINED_OPENS};

const TARGET: &str = "example.org:443";

fn ms(ms: u64) -> Moment {
    Moment::from_micros(1_000 * ms)
}

fn candidate(id: u128, country: &str) -> Candidate {
    let country = Country::parse(country).unwrap();
    Candidate { provider: Uuid::from_u128(id), epoch: 1, connection: 1, country, ipv6: id.is_multiple_of(2) }
}

fn selector(candidates: impl IntoIterator<Item = Candidate>) -> Selector {
    let mut selector = Selector::new(7);
    selector.set_list(Arc::new(Snapshot::new(candidates)), ms(0));
    selector
}

fn germans(count: u128) -> Selector {
    selector((1..=count).map(|id| candidate(id, "de")))
}

fn options(text: &str) -> Arc<Options> {
    Arc::new(Options::parse(text).unwrap())
}

fn begin(selector: &mut Selector, text: &str, now: Moment) -> Search {
    selector.search("acme", options(text), TARGET, now)
}

fn pick(selector: &mut Selector, text: &str, now: Moment) -> Result<(Search, Pick), NoCandidate> {
    let mut search = begin(selector, text, now);
    selector.pick(&mut search, now).map(|pick| (search, pick))
}

/// Opens and closes a stream; the provider it went through.
fn stream(selector: &mut Selector, text: &str, now: Moment) -> Uuid {
    let (search, pick) = pick(selector, text, now).unwrap();
    selector.opened(&search, &pick, now);
    selector.closed(&pick, now);
    pick.candidate.provider
}

#[test]
fn only_what_was_asked_for_is_taken() {
    let list = [candidate(1, "de"), candidate(2, "at"), candidate(3, "fr"), candidate(4, "fr")];
    let mut selector = selector(list);
    let mut seen = HashSet::new();
    for _ in 0..200 {
        seen.insert(stream(&mut selector, "country-de,at", ms(0)).as_u128());
    }
    assert_eq!(seen, HashSet::from([1, 2]));
    assert_eq!(stream(&mut selector, &format!("provider-{:032x}", 3), ms(0)).as_u128(), 3);
    assert_eq!(stream(&mut selector, "country-fr-ip-6", ms(0)).as_u128(), 4);
    for none in ["country-it", "country-de-ip-6", &format!("country-de-provider-{:032x}", 3)] {
        assert_eq!(pick(&mut selector, none, ms(0)).unwrap_err(), NoCandidate::NoneKnown, "{none}");
    }
}

#[test]
fn streams_spread_over_providers_by_what_they_carry() {
    let mut selector = germans(10);
    for _ in 0..1_000 {
        let (search, pick) = pick(&mut selector, "", ms(0)).unwrap();
        selector.opened(&search, &pick, ms(10));
    }
    for id in 1..=10 {
        let live = selector.live(Uuid::from_u128(id));
        assert!((80..=120).contains(&live), "{live} of 1,000 streams on one of ten");
    }
}

#[test]
fn a_slow_provider_is_given_fewer_streams() {
    let mut selector = germans(10);
    let mut slow = 0;
    let mut now = 0;
    for _ in 0..2_000 {
        now += 10;
        let (search, pick) = pick(&mut selector, "", ms(now)).unwrap();
        let is_slow = pick.candidate.provider.as_u128() == 1;
        slow += u32::from(is_slow);
        let then = ms(now + if is_slow { 900 } else { 30 });
        selector.opened(&search, &pick, then);
        selector.closed(&pick, then);
    }
    assert!((1..40).contains(&slow), "{slow} of 2,000");
}

#[test]
fn a_provider_that_is_gone_is_out_until_it_is_seen_again() {
    let mut selector = germans(2);
    let mut gone = None;
    for now in 0..100 {
        let mut search = begin(&mut selector, "", ms(now));
        let first = selector.pick(&mut search, ms(now)).unwrap();
        if first.candidate.provider.as_u128() == 1 {
            assert!(gone.replace(now).is_none(), "asked again at {now} ms");
            selector.failed(&search, &first, Fault::Gone, ms(now));
            // The next candidate at once, for the same customer.
            let next = selector.pick(&mut search, ms(now)).unwrap();
            assert_eq!(next.candidate.provider.as_u128(), 2);
            selector.closed(&next, ms(now));
        } else {
            selector.closed(&first, ms(now));
        }
    }
    assert!(gone.is_some());
    // A list from before changes nothing; another connection does.
    let one = format!("provider-{:032x}", 1);
    selector.set_list(Arc::clone(&selector.list), ms(200));
    assert!(matches!(pick(&mut selector, &one, ms(200)), Err(NoCandidate::Resting { .. })));
    let again = Candidate { connection: 2, ..candidate(1, "de") };
    selector.set_list(Arc::new(Snapshot::new([again, candidate(2, "de")])), ms(300));
    assert_eq!(stream(&mut selector, &one, ms(300)).as_u128(), 1);
}

#[test]
fn a_provider_that_was_gone_by_mistake_is_asked_again_after_a_while() {
    let mut selector = germans(1);
    let (search, first) = pick(&mut selector, "", ms(0)).unwrap();
    selector.failed(&search, &first, Fault::Gone, ms(0));
    assert_eq!(
        pick(&mut selector, "", ms(1)).unwrap_err(),
        NoCandidate::Resting { retry_after: GONE_FIRST - Duration::from_millis(1) }
    );
    // Found gone again and again, it stays out for longer and longer; once it has answered, all is forgotten.
    let mut now = ms(0) + GONE_FIRST;
    for times in 1..12 {
        let (search, first) = pick(&mut selector, "", now).unwrap();
        selector.failed(&search, &first, Fault::Gone, now);
        let rest = (GONE_FIRST * (1 << times)).min(GONE_AT_MOST);
        assert_eq!(pick(&mut selector, "", now).unwrap_err(), NoCandidate::Resting { retry_after: rest });
        now = now + rest;
    }
    let (search, first) = pick(&mut selector, "", now).unwrap();
    selector.opened(&search, &first, now);
    selector.closed(&first, now);
    let (search, first) = pick(&mut selector, "", now).unwrap();
    selector.failed(&search, &first, Fault::Gone, now);
    assert_eq!(pick(&mut selector, "", now).unwrap_err(), NoCandidate::Resting { retry_after: GONE_FIRST });
}

#[test]
fn one_open_tries_three_candidates_and_no_more() {
    let mut selector = germans(9);
    let mut search = begin(&mut selector, "", ms(0));
    let mut asked = HashSet::new();
    for _ in 0..MAX_CANDIDATES_PER_OPEN {
        let pick = selector.pick(&mut search, ms(0)).unwrap();
        assert!(asked.insert(pick.candidate.provider), "one was asked twice");
        selector.failed(&search, &pick, Fault::Failed, ms(0));
    }
    assert_eq!(selector.pick(&mut search, ms(0)).unwrap_err(), RetryRefused::Candidates.into());
}

#[test]
fn no_candidate_is_tried_after_ten_seconds() {
    let mut selector = germans(9);
    let mut search = begin(&mut selector, "", ms(0));
    let first = selector.pick(&mut search, ms(0)).unwrap();
    selector.failed(&search, &first, Fault::TimedOut, ms(10_000));
    assert_eq!(selector.pick(&mut search, ms(10_000)).unwrap_err(), RetryRefused::Time.into());
}

#[test]
fn with_every_provider_failing_a_tenth_more_is_asked_for() {
    let mut selector = germans(5_000);
    let mut attempts = 0;
    for now in 0..5_000 {
        let mut search = begin(&mut selector, "", ms(now));
        while let Ok(pick) = selector.pick(&mut search, ms(now)) {
            attempts += 1;
            selector.failed(&search, &pick, Fault::Failed, ms(now));
        }
    }
    assert!(attempts <= 5_510, "{attempts} attempts for 5,000 opens");
}

#[test]
fn what_the_target_says_is_not_held_against_the_provider() {
    let mut selector = germans(1);
    for now in 0..100 {
        let (_, pick) = pick(&mut selector, "", ms(now)).unwrap();
        selector.refused_by_target(&pick, ms(now + 5));
    }
    assert_eq!(selector.live(Uuid::from_u128(1)), 0);
}

/// Row 45: a reset by one good answer let the loop restart.
#[test]
fn one_success_does_not_reset_the_back_off() {
    let mut selector = germans(1);
    let mut now = ms(0);
    let mut rests = Vec::new();
    for _ in 0..12 {
        let (search, bad) = pick(&mut selector, "", now).unwrap();
        selector.failed(&search, &bad, Fault::Failed, now);
        let Err(NoCandidate::Resting { retry_after }) = pick(&mut selector, "", now) else {
            panic!("asked again at once");
        };
        rests.push(retry_after);
        now = now + retry_after;
        stream(&mut selector, "", now);
    }
    assert!(rests[0] <= FIRST_REST && rests[11] > GREATEST_REST / 3, "{rests:?}");
    for _ in 0..SUSTAINED_OPENS {
        stream(&mut selector, "", now);
    }
    let (search, bad) = pick(&mut selector, "", now).unwrap();
    selector.failed(&search, &bad, Fault::Failed, now);
    assert!(pick(&mut selector, "", now + FIRST_REST).is_ok(), "sustained success does");
}

/// Row 49: an unreachable provider was dialled without a pace.
#[test]
fn an_unreachable_provider_is_dialled_at_a_pace_whatever_customers_want() {
    let mut selector = germans(1);
    let mut dials = 0;
    // Ten minutes, a hundred opens a second.
    for now in (0..600_000).step_by(10) {
        if let Ok((search, bad)) = pick(&mut selector, "", ms(now)) {
            dials += 1;
            selector.failed(&search, &bad, Fault::Failed, ms(now));
        }
    }
    assert!((10..=30).contains(&dials), "{dials} dials");
}

#[test]
fn opens_that_fail_together_are_one_failure() {
    let mut selector = germans(1);
    let picks: Vec<_> = (0..50).map(|_| pick(&mut selector, "", ms(0)).unwrap()).collect();
    for (search, pick) in &picks {
        selector.failed(search, pick, Fault::Failed, ms(100));
    }
    assert!(pick(&mut selector, "", ms(100) + FIRST_REST).is_ok());
    assert_eq!(selector.live(Uuid::from_u128(1)), 1);
}

#[test]
fn a_full_provider_is_left_alone_as_long_as_it_says() {
    let mut selector = germans(1);
    let (search, full) = pick(&mut selector, "", ms(0)).unwrap();
    selector.failed(&search, &full, Fault::Full(Some(Duration::from_secs(20))), ms(0));
    assert!(pick(&mut selector, "", ms(19_999)).is_err());
    assert!(pick(&mut selector, "", ms(20_000)).is_ok());
}

#[test]
fn a_refusal_by_policy_is_remembered_for_that_target_only() {
    let mut selector = germans(1);
    let (search, refused) = pick(&mut selector, "", ms(0)).unwrap();
    selector.failed(&search, &refused, Fault::Policy, ms(0));
    assert!(matches!(pick(&mut selector, "", ms(59_999)), Err(NoCandidate::Resting { .. })));
    let mut other = selector.search("acme", options(""), "example.org:80", ms(1));
    assert!(selector.pick(&mut other, ms(1)).is_ok());
    assert!(pick(&mut selector, "", ms(60_000)).is_ok());
}

#[test]
fn a_session_keeps_its_provider_in_every_proxy() {
    let (mut one, mut other) = (germans(50), selector((1..=50).rev().map(|id| candidate(id, "de"))));
    let mut seen = HashSet::new();
    for name in 0..200 {
        let session = format!("session-s{name}");
        let provider = stream(&mut one, &session, ms(0));
        assert_eq!(stream(&mut other, &session, ms(0)), provider, "another proxy finds another one");
        // Others come and go; the pin stays.
        assert_eq!(stream(&mut one, &session, ms(60_000)), provider);
        seen.insert(provider);
    }
    assert!(seen.len() > 40, "200 sessions went to {} of 50 providers", seen.len());
}

#[test]
fn a_soft_session_moves_on_and_stays_there() {
    let mut selector = germans(5);
    let first = stream(&mut selector, "session-x", ms(0));
    let (search, lost) = pick(&mut selector, "session-x", ms(1)).unwrap();
    assert_eq!(lost.candidate.provider, first);
    selector.failed(&search, &lost, Fault::Gone, ms(1));
    let second = stream(&mut selector, "session-x", ms(2));
    assert_ne!(second, first);
    let back = Candidate { connection: 2, ..candidate(first.as_u128(), "de") };
    let others = (1..=5).map(|id| candidate(id, "de")).filter(|other| other.provider != first);
    let list = Arc::new(Snapshot::new(others.chain([back])));
    selector.set_list(list, ms(3));
    assert_eq!(stream(&mut selector, "session-x", ms(4)), second, "it does not jump back");
}

#[test]
fn a_hard_session_is_refused_without_its_provider() {
    let mut selector = germans(5);
    let first = stream(&mut selector, "session-x-sticky-hard", ms(0));
    let others = (1..=5).map(|id| candidate(id, "de")).filter(|other| other.provider != first);
    selector.set_list(Arc::new(Snapshot::new(others)), ms(1));
    assert_eq!(pick(&mut selector, "session-x-sticky-hard", ms(2)).unwrap_err(), NoCandidate::SessionLost);
    // Until it has ended.
    assert!(pick(&mut selector, "session-x-sticky-hard", ms(0) + sticky::IDLE).is_ok());
}

#[test]
fn what_is_unused_is_forgotten_and_a_list_is_bounded() {
    let mut selector = germans(100);
    for _ in 0..500 {
        stream(&mut selector, "", ms(0));
    }
    let later = ms(0) + FORGOTTEN_AFTER;
    selector.set_list(Arc::clone(&selector.list), later);
    assert!(selector.health.is_empty());
    let many = (0..200_010_u128).map(|id| candidate(id, "de"));
    let list = Snapshot::new(many);
    assert_eq!((list.candidates().len(), list.left_out()), (crate::candidate::MAX_CANDIDATES, 10));
}

/// Whatever happens in whatever order, no stream is counted that is not there, and nobody is asked who rests.
#[test]
fn counts_are_right_after_any_schedule() {
    for seed in 0..300 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut selector = Selector::new(seed);
        let mut live: Vec<(Search, Pick, bool)> = Vec::new();
        let mut now = 0;
        let faults = [Fault::Gone, Fault::TimedOut, Fault::Failed, Fault::Full(None), Fault::Policy];
        for _ in 0..300 {
            now += random.u64(0..400);
            let texts = ["", "country-de", "session-a", "session-b-sticky-hard", "country-at,fr"];
            match random.u32(0..8) {
                0 => {
                    let (mut list, absent) = (Vec::new(), random.u64(..));
                    for id in (0..8).filter(|id| absent >> id & 1 == 0) {
                        let epoch = 1 + u64::from(random.bool());
                        list.push(Candidate { epoch, ..candidate(id, ["de", "at", "fr"][id as usize % 3]) });
                    }
                    let list = Snapshot::new(list);
                    selector.set_list(Arc::new(list), ms(now));
                }
                1..4 => {
                    let text = texts[random.usize(..texts.len())];
                    if let Ok((search, pick)) = pick(&mut selector, text, ms(now)) {
                        assert!(pick.candidate.answers(&options(text)), "seed {seed}");
                        live.push((search, pick, false));
                    }
                }
                _ if live.is_empty() => {}
                _ => {
                    let (search, pick, opened) = live.swap_remove(random.usize(..live.len()));
                    match (opened, random.u32(0..4)) {
                        (true, _) => selector.closed(&pick, ms(now)),
                        (false, 0) => selector.refused_by_target(&pick, ms(now)),
                        (false, 1) => selector.abandoned(&pick),
                        (false, 2) => {
                            let fault = faults[random.usize(..faults.len())];
                            selector.failed(&search, &pick, fault, ms(now));
                        }
                        (false, _) => {
                            selector.opened(&search, &pick, ms(now));
                            live.push((search, pick, true));
                        }
                    }
                }
            }
            for id in 0..8 {
                let provider = Uuid::from_u128(id);
                let there = live.iter().filter(|(_, pick, _)| pick.candidate.provider == provider).count();
                assert_eq!(selector.live(provider) as usize, there, "seed {seed}");
            }
        }
    }
}
