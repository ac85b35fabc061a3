use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

fn member(id: u128, country: &str, verified: bool) -> Member {
    Member {
        provider: Uuid::from_u128(id),
        epoch: 7,
        connected_at_ms: 9,
        relay: format!("relay-{}:443", id % 3).into(),
        country: Country::parse(country).unwrap_or(Country::UNKNOWN),
        verified,
        identity: [id as u8; IDENTITY_BYTES],
    }
}

fn crowd(count: usize) -> Vec<Member> {
    (0..count as u128).map(|id| member(id, "de", id % 10 == 0)).collect()
}

fn names(pool: &Pool<'_>) -> HashSet<Uuid> {
    pool.members.iter().map(|member| member.provider).collect()
}

#[test]
fn there_is_a_pool_of_the_best_and_one_of_each_country() {
    let all = [member(1, "de", true), member(2, "fr", false), member(3, "", false), member(4, "de", false)];
    let pools = generation(&all, 0);
    let told: Vec<_> = pools
        .iter()
        .map(|pool| (pool.name.to_string(), pool.counts.listed, pool.counts.connected, pool.counts.verified))
        .collect();
    let wanted = [("best", 4, 4, 1), ("de", 2, 2, 1), ("fr", 1, 1, 0), ("zz", 1, 1, 0)];
    assert_eq!(
        told,
        wanted.map(|(name, listed, connected, verified)| (name.to_owned(), listed, connected, verified))
    );
    assert!(generation(&[], 0).is_empty());
    for pool in pools {
        assert_eq!(pool.name.to_string().parse(), Ok(pool.name));
    }
}

#[test]
fn of_a_pool_that_is_too_large_the_verified_are_listed_and_the_others_have_their_turns() {
    let all = crowd(MOST_LISTED * 2);
    let pools = generation(&all, 0);
    let best = &pools[0];
    assert_eq!((best.counts.listed as usize, best.counts.connected as usize), (MOST_LISTED, MOST_LISTED * 2));
    assert_eq!(best.counts.verified as usize, MOST_LISTED * 2 / 10, "all that are verified");
    // Half a minute later nearly all are the same.
    let soon = generation(&all, 30_000);
    assert!(names(&soon[0]).difference(&names(best)).count() < MOST_LISTED / 100);
    // After some turns nearly everybody has been listed: 1 - (5/9)^8 of those who draw.
    let mut seen = HashSet::new();
    for turn in 0..8 {
        seen.extend(names(&generation(&all, turn * TURN_MS)[0]));
    }
    assert!(seen.len() > MOST_LISTED * 2 * 95 / 100, "{} of {}", seen.len(), MOST_LISTED * 2);
}

#[test]
fn what_is_written_is_read_and_the_same_members_are_the_same_bytes() {
    let all = [member(1, "de", true), member(2, "fr", false), member(9, "", false)];
    let mut turned: Vec<_> = all.to_vec();
    turned.reverse();
    let (one, other) = (generation(&all, 0), generation(&turned, 5));
    let bytes = encode(&one[0].members);
    assert_eq!(bytes, encode(&other[0].members));
    assert_eq!(decode(&bytes).unwrap(), all);
    assert_eq!(decode(&encode(&[])), Ok(Vec::new()));
}

#[test]
fn a_pool_is_bounded_and_so_is_what_is_read() {
    let all = crowd(MOST_LISTED + 1);
    let refs: Vec<_> = all.iter().collect();
    let bytes = encode(&refs);
    assert!(bytes.len() <= MAX_BLOB_BYTES);
    assert_eq!(decode(&bytes).unwrap().len(), MOST_LISTED);
    // One more than there may be.
    let mut more = encode(&refs[..1]);
    let count_at = more.len() - MEMBER_BYTES - 4;
    more[count_at..count_at + 4].copy_from_slice(&(MOST_LISTED as u32 + 1).to_be_bytes());
    assert_eq!(decode(&more), Err(BlobError::TooMany));
}

#[test]
fn a_pool_with_a_provider_twice_or_a_relay_that_is_not_there_is_refused() {
    let one = member(1, "de", false);
    assert_eq!(decode(&encode(&[&one, &one])), Err(BlobError::Entry));
    let mut bytes = encode(&[&one]);
    let relay_at = bytes.len() - MEMBER_BYTES + 32;
    bytes[relay_at + 1] = 9;
    assert_eq!(decode(&bytes), Err(BlobError::Entry));
    bytes.push(0);
    assert_eq!(decode(&bytes), Err(BlobError::Length));
    assert_eq!(decode(b"HFP2"), Err(BlobError::Form));
}

proptest! {
    #[test]
    fn no_bytes_break_the_reader(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = decode(&bytes);
        let _ = decode(&[b"HFP1", &bytes[..]].concat());
    }

    #[test]
    fn a_damaged_pool_is_refused_or_read_within_its_bounds(at in 0_usize..600, byte in any::<u8>()) {
        let all = crowd(5);
        let refs: Vec<_> = all.iter().collect();
        let mut bytes = encode(&refs);
        let length = bytes.len();
        bytes[at % length] = byte;
        if let Ok(members) = decode(&bytes) {
            prop_assert_eq!(members.len(), 5);
        }
    }
}

fn trusted() -> Inputs {
    Inputs { relays_fresh: 10, relays_known: 10, ..Inputs::default() }
}

fn doubtful() -> Inputs {
    Inputs { relays_fresh: 3, ..trusted() }
}

fn verdict(before: u32, now: u32, inputs: &Inputs) -> Result<(), Held> {
    let counts = Counts { connected: now, ..Counts::default() };
    judge(&[Before { name: PoolName::Best, connected: before }], &[(PoolName::Best, counts)], inputs)
}

#[test]
fn in_doubt_a_great_loss_is_not_believed_and_a_small_one_is() {
    for (before, least) in [(9, 1), (10, 5), (99, 50), (100, 70), (999, 700), (1_000, 850), (75_000, 63_750)]
    {
        assert_eq!(verdict(before, least, &doubtful()), Ok(()), "{before} to {least}");
        let held = verdict(before, least - before.div_ceil(100), &doubtful()).unwrap_err();
        assert_eq!((held.before, held.doubt), (before, Doubt::FewBeats { fresh: 3, known: 10 }));
    }
    assert_eq!(verdict(0, 0, &doubtful()), Ok(()));
    assert_eq!(verdict(50, 80, &doubtful()), Ok(()));
}

#[test]
fn an_emptied_pool_is_published_only_if_the_inputs_are_trusted() {
    assert!(verdict(1, 0, &doubtful()).is_err());
    assert_eq!(verdict(1_000, 0, &trusted()), Ok(()));
    // A pool that is not among the new ones is empty.
    let before = [Before { name: "de".parse().unwrap(), connected: 4 }];
    let held = judge(&before, &[], &doubtful()).unwrap_err();
    assert_eq!((held.pool.to_string(), held.now), ("de".to_owned(), 0));
}

#[test]
fn inputs_are_in_doubt_if_few_relays_beat_have_just_started_or_the_reaper_holds() {
    let inputs = |fresh, settling, known| Inputs {
        relays_fresh: fresh,
        relays_settling: settling,
        relays_known: known,
        reaper_holds: false,
    };
    for (trusted, relays) in [
        (true, (1, 0, 1)),
        (false, (0, 0, 1)),
        (false, (0, 0, 0)),
        (false, (1, 1, 1)),
        (true, (1, 0, 2)),
        (false, (2, 1, 2)),
        (true, (3, 1, 3)),
        (true, (5, 0, 10)),
        (false, (4, 0, 10)),
        (true, (10, 4, 10)),
        (false, (10, 5, 10)),
    ] {
        assert_eq!(inputs(relays.0, relays.1, relays.2).doubt().is_none(), trusted, "{relays:?}");
    }
    assert_eq!(Inputs { reaper_holds: true, ..trusted() }.doubt(), Some(Doubt::ReaperHolds));
}

#[test]
fn the_cause_of_a_hold_says_which_pool_and_why() {
    let held = verdict(40, 3, &doubtful()).unwrap_err();
    assert_eq!(held.to_string(), "pool 'best' would go from 40 to 3 providers, and 3 of 10 relays beat");
}
