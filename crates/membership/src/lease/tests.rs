use super::*;
use proptest::prelude::*;

const WEEK_MS: u64 = 7 * 86_400_000;

fn refusal(cause: Cause) -> Refusal {
    Refusal { cause, until_ms: WEEK_MS }
}

#[test]
fn an_answer_extends_all_a_refusal_ends_its_own_and_no_answer_changes_nothing() {
    let mut leases = Leases::default();
    assert_eq!(leases.standing(1), Standing::Valid, "before anything was heard, nobody is refused");
    leases.answer_whole([(1, refusal(Cause::Disabled))], 1_000);
    // Hours without an answer.
    assert_eq!(leases.standing(1), Standing::Refused(Cause::Disabled));
    assert_eq!(leases.standing(2), Standing::Valid);
    leases.answer_changes([(2, Some(refusal(Cause::Revoked))), (1, None)], 2_000);
    assert_eq!(
        (leases.standing(1), leases.standing(2)),
        (Standing::Valid, Standing::Refused(Cause::Revoked))
    );
    leases.answer_whole([], 3_000);
    assert_eq!(leases.standing(2), Standing::Valid);
}

#[test]
fn a_refusal_is_kept_for_as_long_as_a_token_could_live() {
    let mut leases = Leases::default();
    leases.answer_changes([(1, Some(refusal(Cause::Disabled)))], 0);
    leases.answer_changes([], WEEK_MS - 1);
    assert_eq!(leases.standing(1), Standing::Refused(Cause::Disabled));
    leases.answer_changes([], WEEK_MS);
    assert_eq!((leases.standing(1), leases.len()), (Standing::Valid, 0));
}

#[test]
fn memory_is_bounded_and_what_would_end_first_goes_first() {
    let many = (0..MOST_REFUSALS + 10).map(|client| {
        let until_ms = if client < 10 { 5_000 } else { WEEK_MS };
        (client, Refusal { cause: Cause::Disabled, until_ms })
    });
    let leases = Leases::kept(many);
    assert_eq!(leases.len(), MOST_REFUSALS);
    assert!((0..10).all(|client| leases.standing(client) == Standing::Valid));
    assert_eq!(leases.standing(10), Standing::Refused(Cause::Disabled));
}

#[test]
fn a_cause_has_one_label_and_a_label_one_cause() {
    for cause in [Cause::Revoked, Cause::Disabled, Cause::AccountDisabled] {
        assert_eq!(Cause::from_label(cause.label()), Some(cause));
    }
    assert_eq!(Cause::from_label("x"), None);
}

#[derive(Clone, Debug)]
enum Heard {
    Whole(Vec<u8>),
    Changed(Vec<(u8, bool)>),
    Nothing,
}

fn heard() -> impl Strategy<Value = Heard> {
    prop_oneof![
        prop::collection::vec(0..20_u8, 0..8).prop_map(Heard::Whole),
        prop::collection::vec((0..20_u8, any::<bool>()), 0..8).prop_map(Heard::Changed),
        Just(Heard::Nothing),
    ]
}

proptest! {
    /// Whatever is heard in whatever order: a client is refused exactly if the last answer that named it, or named all, refused it.
    #[test]
    fn the_last_definite_answer_holds(all in prop::collection::vec(heard(), 0..40)) {
        let mut leases = Leases::default();
        let mut model = [false; 20];
        for (at, heard) in all.into_iter().enumerate() {
            let now_ms = at as u64;
            match heard {
                Heard::Whole(refused) => {
                    model = [false; 20];
                    refused.iter().for_each(|client| model[usize::from(*client)] = true);
                    leases.answer_whole(refused.into_iter().map(|one| (one, refusal(Cause::Revoked))), now_ms);
                }
                Heard::Changed(changed) => {
                    changed.iter().for_each(|(client, is_refused)| model[usize::from(*client)] = *is_refused);
                    let changed = changed.into_iter().map(|(one, is)| (one, is.then(|| refusal(Cause::Revoked))));
                    leases.answer_changes(changed, now_ms);
                }
                Heard::Nothing => {}
            }
            for client in 0..20_u8 {
                let is_refused = leases.standing(client) != Standing::Valid;
                prop_assert_eq!(is_refused, model[usize::from(client)]);
            }
        }
    }
}
