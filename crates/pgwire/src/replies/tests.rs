use super::*;
use proptest::prelude::*;

fn send(queue: &mut ReplyQueue, tags: &[u8]) {
    for &tag in tags {
        queue.sent(tag, Origin::Client).unwrap();
    }
}

/// Feeds server messages; `Z` is written as its status byte behind a colon, e.g. `C:I`.
fn receive(queue: &mut ReplyQueue, tags: &str) -> Vec<Received> {
    let mut seen = Vec::new();
    let mut bytes = tags.bytes();
    while let Some(tag) = bytes.next() {
        let (tag, first) = if tag == b':' { (b'Z', bytes.next()) } else { (tag, None) };
        seen.push(queue.received(tag, first).unwrap());
    }
    seen
}

#[test]
fn a_simple_query_is_settled_by_its_ready_and_not_before() {
    let mut queue = ReplyQueue::new();
    send(&mut queue, b"Q");
    receive(&mut queue, "TDC");
    assert!(!queue.is_settled());
    assert_eq!(receive(&mut queue, ":I"), [Received::Ready(Origin::Client, TransactionStatus::Idle)]);
    assert!(queue.is_settled());
}

#[test]
fn a_pipeline_is_settled_only_by_its_last_ready() {
    let mut queue = ReplyQueue::new();
    send(&mut queue, b"QQQ");
    receive(&mut queue, "C:TTDC:TC");
    assert!(!queue.is_settled());
    receive(&mut queue, ":I");
    assert!(queue.is_settled());
}

#[test]
fn a_transaction_or_a_batch_without_sync_keeps_the_server() {
    let mut queue = ReplyQueue::new();
    send(&mut queue, b"Q");
    receive(&mut queue, "C:T");
    assert_eq!(queue.owes(), Owes::Nothing(TransactionStatus::InTransaction));
    send(&mut queue, b"Q");
    receive(&mut queue, "C:I");
    assert!(queue.is_settled());
    send(&mut queue, b"PDH");
    receive(&mut queue, "1tT");
    assert!(queue.is_empty() && !queue.is_settled());
    assert_eq!(queue.owes(), Owes::Batch);
    send(&mut queue, b"BES");
    receive(&mut queue, "2DC:I");
    assert!(queue.is_settled());
}

#[test]
fn after_an_error_everything_up_to_sync_is_skipped() {
    let mut queue = ReplyQueue::new();
    send(&mut queue, b"PBDES");
    receive(&mut queue, "1E:I");
    assert!(queue.is_settled());
    // The error comes before the rest of the batch has been sent.
    send(&mut queue, b"P");
    receive(&mut queue, "E");
    send(&mut queue, b"BEPQ");
    assert!(queue.is_empty());
    send(&mut queue, b"SQ");
    receive(&mut queue, ":IC:I");
    assert!(queue.is_settled());
}

#[test]
fn an_error_at_commit_leaves_the_sync_owed() {
    let mut queue = ReplyQueue::new();
    send(&mut queue, b"PBES");
    receive(&mut queue, "12CE:I");
    assert!(queue.is_settled());
}

#[test]
fn sync_inside_copy_in_brings_no_reply() {
    // Parse, Bind, Execute, Sync, CopyData, CopyDone, Sync: the first Sync is swallowed (pgbouncer #1023).
    let mut queue = ReplyQueue::new();
    send(&mut queue, b"PBES");
    receive(&mut queue, "12G");
    assert_eq!(queue.owes(), Owes::CopyIn { extended: true });
    send(&mut queue, b"ddSdcS");
    receive(&mut queue, "C");
    assert!(!queue.is_settled());
    receive(&mut queue, ":I");
    assert!(queue.is_settled() && !queue.is_doubtful());
}

#[test]
fn a_copy_whose_only_sync_was_swallowed_is_not_over_before_the_next_one() {
    let mut queue = ReplyQueue::new();
    send(&mut queue, b"PBES");
    receive(&mut queue, "12G");
    send(&mut queue, b"dc");
    receive(&mut queue, "C");
    assert!(!queue.is_settled(), "the server waits for a Sync");
    assert_eq!(queue.owes(), Owes::Batch);
    send(&mut queue, b"S");
    receive(&mut queue, ":I");
    assert!(queue.is_settled() && !queue.is_doubtful());
}

#[test]
fn a_copy_sent_ahead_of_its_answer_is_understood() {
    let mut queue = ReplyQueue::new();
    send(&mut queue, b"PBEddcSQ");
    receive(&mut queue, "12GC:IC:I");
    assert!(queue.is_settled());
    send(&mut queue, b"Qdc");
    receive(&mut queue, "GC:I");
    assert!(queue.is_settled());
}

#[test]
fn a_failed_copy_with_swallowed_syncs_is_not_used_again() {
    let mut queue = ReplyQueue::new();
    send(&mut queue, b"PBES");
    receive(&mut queue, "12G");
    send(&mut queue, b"ddcS");
    receive(&mut queue, "E:I");
    assert!(queue.is_settled());
    assert!(queue.is_doubtful());
}

#[test]
fn syncs_that_a_failed_copy_has_not_swallowed_are_answered() {
    // The data is bad before the first Sync, or between them, or the client fails the COPY behind both.
    for swallowed in 0..=2 {
        let mut queue = ReplyQueue::new();
        send(&mut queue, b"Q");
        receive(&mut queue, "G");
        send(&mut queue, b"dSdSdcS");
        receive(&mut queue, "E:I");
        for _ in swallowed..=2 {
            receive(&mut queue, ":I");
        }
        assert!(queue.is_settled());
        assert_eq!(
            queue.is_doubtful(),
            swallowed > 0,
            "one that may still come looks like one that will not"
        );
        // What comes next tells.
        send(&mut queue, b"QQ");
        receive(&mut queue, "C:IC:I");
        assert!(queue.is_settled() && !queue.is_doubtful());
    }
    // By the extended protocol, where the server skips to the first that is left.
    for swallowed in 0..=1 {
        let mut queue = ReplyQueue::new();
        send(&mut queue, b"PBES");
        receive(&mut queue, "12G");
        send(&mut queue, b"dc");
        receive(&mut queue, "E");
        assert!(!queue.is_settled());
        if swallowed == 0 {
            receive(&mut queue, ":I");
            assert!(queue.is_settled() && !queue.is_doubtful());
        } else {
            assert_eq!(queue.owes(), Owes::Batch);
        }
        send(&mut queue, b"S");
        receive(&mut queue, ":I");
        assert!(queue.is_settled());
        send(&mut queue, b"FPBES");
        receive(&mut queue, "V:I12C:I");
        assert!(queue.is_settled() && !queue.is_doubtful());
    }
}

#[test]
fn a_failed_copy_without_such_syncs_is_fine() {
    let mut queue = ReplyQueue::new();
    send(&mut queue, b"PBE");
    receive(&mut queue, "12G");
    send(&mut queue, b"df");
    receive(&mut queue, "E");
    send(&mut queue, b"S");
    receive(&mut queue, ":I");
    assert!(queue.is_settled() && !queue.is_doubtful());
    send(&mut queue, b"Q");
    receive(&mut queue, "G");
    assert_eq!(queue.owes(), Owes::CopyIn { extended: false });
    send(&mut queue, b"f");
    receive(&mut queue, "E:I");
    assert!(queue.is_settled() && !queue.is_doubtful());
}

#[test]
fn copy_out_and_portal_suspension_and_function_calls() {
    let mut queue = ReplyQueue::new();
    send(&mut queue, b"Q");
    receive(&mut queue, "H");
    assert_eq!(queue.owes(), Owes::CopyOut);
    receive(&mut queue, "ddcC:I");
    assert!(queue.is_settled());
    send(&mut queue, b"PBES");
    receive(&mut queue, "12Ds:T");
    assert!(!queue.is_settled());
    send(&mut queue, b"ECS");
    receive(&mut queue, "DC3:I");
    assert!(queue.is_settled());
    send(&mut queue, b"F");
    receive(&mut queue, "V:I");
    assert!(queue.is_settled());
}

#[test]
fn answers_to_the_poolers_own_queries_are_told_apart() {
    let mut queue = ReplyQueue::new();
    queue.sent(b'Q', Origin::Pooler).unwrap();
    queue.sent(b'Q', Origin::Client).unwrap();
    assert_eq!(queue.received(b'C', None), Ok(Received::Answer(Origin::Pooler)));
    assert_eq!(queue.received(b'S', None), Ok(Received::Asynchronous));
    assert_eq!(
        queue.received(b'Z', Some(b'I')),
        Ok(Received::Ready(Origin::Pooler, TransactionStatus::Idle))
    );
    assert_eq!(queue.received(b'T', None), Ok(Received::Answer(Origin::Client)));
}

#[test]
fn a_reply_that_nothing_explains_is_a_desync() {
    let mut queue = ReplyQueue::new();
    assert!(queue.received(b'Z', Some(b'I')).is_err());
    send(&mut queue, b"P");
    assert!(queue.received(b'2', None).is_err());
    assert_eq!(queue.received(b'1', None), Ok(Received::Answer(Origin::Client)));
    send(&mut queue, b"S");
    assert!(queue.received(b'Z', Some(b'?')).is_err());
}

#[test]
fn the_queue_is_bounded_and_unknown_messages_are_refused() {
    let mut queue = ReplyQueue::new();
    for _ in 0..MAX_OWED {
        queue.sent(b'P', Origin::Client).unwrap();
    }
    assert_eq!(queue.sent(b'P', Origin::Client), Err(SendError::Full));
    assert_eq!(queue.len(), MAX_OWED);
    assert_eq!(ReplyQueue::new().sent(b'p', Origin::Client), Err(SendError::Unknown { tag: b'p' }));
}

proptest! {
    /// Whatever either side sends, the queue neither panics nor passes its bound, and only ReadyForQuery settles it.
    #[test]
    fn any_traffic_keeps_the_bounds(moves in proptest::collection::vec((any::<bool>(), any::<u8>(), any::<Option<u8>>()), 0..200)) {
        let mut queue = ReplyQueue::new();
        for (to_server, tag, first) in moves {
            if to_server {
                let _ = queue.sent(tag, Origin::Client);
            } else {
                let was_settled = queue.is_settled();
                let result = queue.received(tag, first);
                if !was_settled && queue.is_settled() {
                    prop_assert!(matches!(result, Ok(Received::Ready(..))));
                }
            }
            prop_assert!(queue.len() <= MAX_OWED);
        }
    }
}

#[test]
fn simulated_answers_wait_for_their_turn() {
    let mut queue = ReplyQueue::new();
    send(&mut queue, b"B");
    queue.simulate(Simulated::CloseComplete).unwrap();
    queue.simulate(Simulated::ParseComplete).unwrap();
    send(&mut queue, b"ES");
    assert_eq!(queue.take_simulated(), None, "the answer to Bind comes first");
    receive(&mut queue, "2");
    assert_eq!(queue.take_simulated(), Some(Simulated::CloseComplete));
    assert_eq!(queue.take_simulated(), Some(Simulated::ParseComplete));
    assert_eq!(queue.take_simulated(), None);
    assert_eq!(queue.take_settled(), Settled { confirmed: 2, failed: false, skipped: 0 });
    receive(&mut queue, "C:I");
    assert!(queue.is_settled());
}

#[test]
fn what_becomes_of_messages_with_an_effect_is_told() {
    let mut queue = ReplyQueue::new();
    for tag in [b'P', b'B'] {
        assert_eq!(queue.sent_with_effect(tag, Origin::Client), Ok(Noted::Owed));
    }
    send(&mut queue, b"E");
    queue.simulate(Simulated::ParseComplete).unwrap();
    queue.sent_with_effect(b'B', Origin::Client).unwrap();
    send(&mut queue, b"S");
    receive(&mut queue, "1");
    assert_eq!(queue.take_settled(), Settled { confirmed: 1, failed: false, skipped: 0 });
    receive(&mut queue, "E");
    assert_eq!(queue.take_settled(), Settled { confirmed: 0, failed: true, skipped: 2 });
    assert_eq!(queue.readies(), 1);
    receive(&mut queue, ":I");
    assert!(queue.is_settled() && queue.readies() == 0);
    // While the server ignores what is sent, nothing is owed and nothing will be told.
    send(&mut queue, b"P");
    receive(&mut queue, "E");
    assert_eq!(queue.sent_with_effect(b'P', Origin::Client), Ok(Noted::Nothing));
    assert_eq!(queue.simulate(Simulated::ParseComplete), Ok(Noted::Nothing));
}

#[test]
fn an_injected_message_is_the_poolers_when_it_succeeds_and_the_clients_when_it_fails() {
    let mut queue = ReplyQueue::new();
    for injected in [true, false] {
        queue.sent(b'P', Origin::Injected).unwrap();
        send(&mut queue, b"BS");
        if injected {
            assert_eq!(receive(&mut queue, "1"), [Received::Answer(Origin::Pooler)]);
            assert_eq!(receive(&mut queue, "2"), [Received::Answer(Origin::Client)]);
        } else {
            assert_eq!(receive(&mut queue, "E"), [Received::Answer(Origin::Client)]);
        }
        receive(&mut queue, ":I");
    }
}

#[test]
fn a_query_behind_the_bad_data_of_a_copy_is_not_answered_to_somebody_else() {
    // The server may have given up the COPY before it read what follows, and then carries that out.
    for (begin, opened, behind) in [
        (&b"Q"[..], "G", &b"dQ"[..]),
        (b"Q", "G", b"dF"),
        (b"PBES", "12G", b"dSQ"),
        (b"PBES", "12G", b"dSPBE"),
    ] {
        let mut queue = ReplyQueue::new();
        send(&mut queue, begin);
        receive(&mut queue, opened);
        send(&mut queue, behind);
        receive(&mut queue, "E:I");
        assert!(queue.is_doubtful(), "{}", behind.escape_ascii());
    }
}
