use super::*;

const HOUR_MS: u64 = 3_600_000;

fn ms(ms: u64) -> Moment {
    Moment::from_micros(1_000 * ms)
}

fn granted(bytes: u64) -> Outcome {
    let contract = Uuid::now_v7();
    Outcome::Granted(ContractAnswer { contract, signed: "signed".into(), bytes, expires_at_ms: HOUR_MS })
}

fn refused(code: ErrorCode, retry_after_ms: Option<u64>) -> Outcome {
    Outcome::Refused(ErrorAnswer { code, cause: "nothing is left".into(), retry_after_ms })
}

fn block(purse: &Purse, now: u64) -> Arc<Block> {
    match purse.take(ms(now), now) {
        Take::Block(block) => block,
        other => panic!("{other:?}"),
    }
}

fn with_block(bytes: u64) -> Purse {
    let mut purse = Purse::default();
    assert!(matches!(purse.take(ms(0), 0), Take::Wait));
    assert!(purse.question("acme", ms(0), 0).is_some());
    purse.answered(&granted(bytes), ms(0), 0);
    purse
}

#[test]
fn the_next_block_is_asked_for_when_half_is_used() {
    let mut purse = with_block(1_000);
    let first = block(&purse, 0);
    assert!(!first.moved(499) && purse.question("acme", ms(0), 0).is_none());
    assert!(first.moved(1), "half is used");
    assert!(!first.moved(1), "said once");
    let question = purse.question("acme", ms(0), 0).unwrap();
    assert_eq!(question.previous, Some(first.contract.id.0));
    assert!(purse.question("acme", ms(0), 0).is_none(), "asked once");
    // Streams go on meanwhile.
    assert!(Arc::ptr_eq(&block(&purse, 0), &first));
    let second = purse.answered(&granted(2_000), ms(0), 0).unwrap();
    assert_eq!(second.contract.follows, Some(first.contract.id));
    assert!(Arc::ptr_eq(&block(&purse, 0), &second));
}

#[test]
fn bytes_of_an_old_stream_count_against_the_block_that_goes_on_for_its_own() {
    let mut purse = with_block(1_000);
    let first = block(&purse, 0);
    first.moved(600);
    assert!(purse.question("acme", ms(0), 0).is_some());
    let second = purse.answered(&granted(2_000), ms(0), 0).unwrap();
    first.moved(400);
    assert_eq!((first.used(), second.used()), (1_000, 0));
    assert!(!first.moved(999) && first.moved(1), "half of the second");
    assert_eq!((first.used(), second.used()), (1_000, 1_000));
}

#[test]
fn without_a_grant_the_block_is_finished_and_then_opens_are_refused_with_the_cause() {
    let mut purse = with_block(1_000);
    let first = block(&purse, 0);
    first.moved(600);
    assert!(purse.question("acme", ms(0), 0).is_some());
    assert!(purse.answered(&refused(ErrorCode::GrantSpent, Some(20_000)), ms(0), 0).is_none());
    assert!(Arc::ptr_eq(&block(&purse, 1), &first));
    assert!(purse.question("acme", ms(1), 1).is_none(), "the refusal is remembered");
    first.moved(400);
    let Take::Refused(refusal) = purse.take(ms(5_000), 5_000) else { panic!("it has bytes") };
    assert_eq!((refusal.reason, &*refusal.cause), (Reason::NoGrant, "nothing is left"));
    assert_eq!(refusal.retry_after, Some(Duration::from_secs(15)));
    assert!(matches!(purse.take(ms(20_000), 20_000), Take::Wait));
    assert!(purse.question("acme", ms(20_000), 20_000).is_some());
}

#[test]
fn a_silent_api_is_asked_again_under_the_same_id_ever_more_slowly() {
    let mut purse = with_block(1_000);
    let first = block(&purse, 0);
    first.moved(600);
    let mut ids = Vec::new();
    let (mut now, mut pauses) = (0, Vec::new());
    while now < 120_000 {
        if let Some(question) = purse.question("acme", ms(now), now) {
            ids.push(question.request);
            pauses.push(now);
            purse.answered(&Outcome::Silent, ms(now), 0);
        }
        assert!(matches!(purse.take(ms(now), now), Take::Block(_)), "its bytes do not need the api");
        now += 100;
    }
    assert!(ids.len() < 12 && ids.iter().all(|id| *id == ids[0]), "{pauses:?}");
    first.set_spent();
    let refusal = match purse.take(ms(now), now) {
        Take::Refused(refusal) => refusal,
        other => panic!("{other:?}"),
    };
    assert_eq!(refusal.reason, Reason::Unavailable);
    assert!(refusal.retry_after.is_some());
}

#[test]
fn a_block_near_its_end_of_time_carries_no_new_stream() {
    let mut purse = with_block(1_000);
    let late = HOUR_MS - EXPIRY_MARGIN_MS;
    assert!(matches!(purse.take(ms(0), late - 1), Take::Block(_)));
    assert!(matches!(purse.take(ms(0), late), Take::Wait));
    assert!(purse.question("acme", ms(0), late).is_some());
}

#[test]
fn an_unused_block_is_given_back() {
    let mut purse = with_block(1_000);
    let first = block(&purse, 0);
    first.stream_opened();
    assert!(purse.give_back().is_none());
    assert!(first.stream_closed());
    assert!(purse.give_back().is_some());
    assert!(matches!(purse.take(ms(0), 0), Take::Wait));
}

#[test]
fn a_block_is_in_use_as_long_as_streams_of_any_before_it() {
    let mut purse = with_block(1_000);
    let first = block(&purse, 0);
    first.stream_opened();
    let mut last = Arc::clone(&first);
    for _ in 0..3 {
        last.moved(1_000);
        assert!(purse.question("acme", ms(0), 0).is_some());
        last = purse.answered(&granted(1_000), ms(0), 0).unwrap();
        assert!(last.in_use(), "the stream has gone on to it");
    }
    assert!(purse.give_back().is_none());
    assert!(first.stream_closed());
    assert!(!last.in_use() && last.give_back() && !last.give_back());
    let freed = Arc::downgrade(&first);
    drop(first);
    assert!(freed.upgrade().is_none(), "blocks that are over are kept");
}

/// At the end of a grant the api had nothing but blocks of a few seconds, and was asked for the next one without a pause.
#[test]
fn a_block_that_is_over_before_it_can_be_used_is_a_refusal_with_a_pause() {
    let answer = |expires_at_ms| ContractAnswer {
        contract: Uuid::now_v7(),
        signed: "signed".into(),
        bytes: 1_000,
        expires_at_ms,
    };
    let mut purse = Purse::default();
    assert!(purse.question("acme", ms(0), 0).is_some());
    purse.answered(&Outcome::of(answer(EXPIRY_MARGIN_MS), 0), ms(0), 0);
    assert!(matches!(purse.take(ms(0), 0), Take::Refused(refusal) if refusal.reason == Reason::NoGrant));
    assert!(purse.question("acme", ms(0), 0).is_none(), "asked again at once");
    assert!(purse.question("acme", ms(5_000), 5_000).is_some());
    purse.answered(&Outcome::of(answer(HOUR_MS), 5_000), ms(5_000), 0);
    block(&purse, 5_000);
}

/// The api answers, and its database does not: the customer hears that, and when to come back.
#[test]
fn an_api_that_cannot_say_is_asked_again_under_the_same_id_when_it_has_said_and_its_cause_is_told() {
    let mut purse = with_block(1_000);
    block(&purse, 0).set_spent();
    let unable = |retry_after_ms| {
        let cause = "the network's database gives no answer".to_owned();
        Outcome::Unable(ErrorAnswer { code: ErrorCode::Unavailable, cause, retry_after_ms })
    };
    let first = purse.question("acme", ms(0), 0).unwrap();
    purse.answered(&unable(Some(10_000)), ms(0), 0);
    let Take::Refused(refusal) = purse.take(ms(1_000), 1_000) else { panic!("it has bytes") };
    assert_eq!((refusal.reason, refusal.retry_after), (Reason::Unavailable, Some(Duration::from_secs(9))));
    assert!(refusal.cause.contains("database gives no answer"), "{}", refusal.cause);
    assert!(purse.question("acme", ms(9_999), 9_999).is_none());
    assert_eq!(purse.question("acme", ms(10_000), 10_000).unwrap().request, first.request);
    purse.answered(&unable(Some(u64::MAX)), ms(10_000), 0);
    assert!(
        purse.question("acme", ms(10_000) + GREATEST_PAUSE, 40_000).is_some(),
        "it never stays away for good"
    );
}
