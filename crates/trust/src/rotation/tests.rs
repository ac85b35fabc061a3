use super::*;
use crate::error::TokenError;
use crate::ids::{ClientId, NetworkId, Role, Thumbprint};
use crate::signed::TokenKey;
use crate::token::ClientClaims;
use crate::{MAX_KEYS, RootKey};
use proptest::prelude::*;

const SETTLE_MS: u64 = 60_000;

fn first(network: NetworkId, key: &TokenKey) -> KeyRing {
    KeyRing::new(network, 1, 0, vec![RingKey::new(*key.public_key(), KeyState::Signing)]).unwrap()
}

fn token(network: NetworkId, key: &TokenKey, now_s: u64) -> String {
    let claims = ClientClaims {
        network,
        client: ClientId::random(),
        role: Role::App,
        thumbprint: Thumbprint([0; 32]),
        epoch: 0,
        issued_at_s: now_s,
        expires_at_s: now_s + TOKEN_LIFE_MS / 1_000,
    };
    claims.sign(key).unwrap()
}

#[test]
fn a_key_signs_only_after_it_was_coming_and_the_old_one_stays_for_the_life_of_its_tokens() {
    let network = RootKey::generate().unwrap().network();
    let (old, new) = (TokenKey::generate().unwrap(), TokenKey::generate().unwrap());
    let ring = first(network, &old);
    assert_eq!(ring.switched(5), Err(RotationError::NothingComing));
    let ring = ring.with_coming(*new.public_key(), 10).unwrap();
    assert_eq!(
        (ring.number(), ring.coming().unwrap().id, ring.signing().unwrap().id),
        (2, new.id(), old.id())
    );
    let again = ring.with_coming([1; 32], 11);
    assert_eq!(again, Err(RotationError::Coming(new.id())), "one at a time");
    let withdrawn = ring.withdrawn(12).unwrap();
    assert_eq!(
        (withdrawn.number(), withdrawn.coming(), withdrawn.signing().unwrap().id),
        (3, None, old.id())
    );
    assert_eq!(withdrawn.withdrawn(13), Err(RotationError::NothingComing));
    // The last token that the old key signs, in the second in which it is retired.
    let last = token(network, &old, 100);
    let ring = ring.switched(100).unwrap();
    assert_eq!((ring.number(), ring.coming(), ring.signing().unwrap().id), (3, None, new.id()));
    let end_s = 100 + TOKEN_LIFE_MS / 1_000;
    assert_eq!(ring.tidied(end_s), None, "its last token still holds");
    assert!(ClientClaims::verify(&last, &ring, (end_s - 1) * 1_000).is_ok());
    let over_s = 100 + RETIRED_FOR_MS / 1_000;
    assert_eq!(ring.tidied(over_s), None, "whoever was away may still renew it");
    let fresh = token(network, &old, over_s);
    assert_eq!(
        ClientClaims::verify(&fresh, &ring, over_s * 1_000),
        Err(TokenError::Expired),
        "it signs no more"
    );
    assert!(ClientClaims::verify(&last, &ring, 0).is_ok(), "to be renewed");
    let tidied = ring.tidied(100 + KEPT_FOR_S).unwrap();
    assert_eq!((tidied.number(), tidied.keys().len(), tidied.signing().unwrap().id), (4, 1, new.id()));
}

#[test]
fn a_ring_that_is_full_takes_no_more_until_an_old_key_leaves() {
    let network = NetworkId([1; 32]);
    let mut ring = first(network, &TokenKey::generate().unwrap());
    for count in 1..MAX_KEYS {
        ring = ring.with_coming([count as u8; 32], 10).unwrap().switched(20).unwrap();
    }
    assert!(matches!(ring.with_coming([99; 32], 30), Err(RotationError::Ring(DocumentError::TooMany(_)))));
    assert!(ring.with_coming([99; 32], 20 + RETIRED_FOR_MS / 1_000).is_ok());
}

#[test]
fn the_moment_of_a_state_survives_the_document_and_old_documents_have_none() {
    let root = RootKey::generate().unwrap();
    let ring = first(root.network(), &TokenKey::generate().unwrap()).with_coming([4; 32], 77).unwrap();
    let read = KeyRing::verify(&ring.sign(&root).unwrap(), root.network()).unwrap();
    assert_eq!(read.coming().unwrap().since_s, 77);
    assert_eq!(read.signing().unwrap().since_s, 0);
    assert!(!serde_json::to_string(read.signing().unwrap()).unwrap().contains("since"));
}

fn witness(ring: u64, since_ms: u64) -> Witness {
    Witness { ring, since_ms, can_sign: None }
}

#[test]
fn the_gate_opens_a_fixed_time_after_the_last_one_that_lives_has_seen_the_key() {
    let gate_of = |witnesses: &[Witness], now_ms| gate(2, 1_000, witnesses, SETTLE_MS, now_ms);
    assert_eq!(gate_of(&[witness(2, 5_000), witness(1, 100)], 1 << 40), Gate::Unseen(1));
    let all = [witness(2, 5_000), witness(3, 9_000)];
    assert_eq!(gate_of(&all, 9_000 + SETTLE_MS - 1), Gate::Settling(9_000 + SETTLE_MS));
    assert_eq!(gate_of(&all, 9_000 + SETTLE_MS), Gate::Open);
    // The one that has died is not among them any more.
    assert_eq!(gate_of(&all[..1], 5_000 + SETTLE_MS), Gate::Open);
    assert_eq!(
        gate_of(&[], 1_000 + SETTLE_MS - 1),
        Gate::Settling(1_000 + SETTLE_MS),
        "nobody lives: it settles still"
    );
    let api = |can_sign| Witness { can_sign: Some(can_sign), ..witness(2, 0) };
    assert_eq!(gate_of(&[api(true), api(false)], 1 << 40), Gate::Secretless(1));
    assert_eq!(gate_of(&[api(true)], 1 << 40), Gate::Open);
}

proptest! {
    /// Verifiers that read when they like, a key that signs as soon as the gate is open: none of those who live ever meets a token
    /// that it does not know.
    #[test]
    fn no_living_verifier_meets_a_key_that_it_does_not_know(
        delays in prop::collection::vec(0..600_000_u64, 1..12),
        settle_ms in 0..120_000_u64,
        step_ms in 500..20_000_u64,
    ) {
        let published_ms = 1_000_000;
        let mut now_ms = published_ms;
        let switched_ms = loop {
            let witnesses: Vec<_> = delays.iter().map(|delay| {
                let seen_ms = published_ms + delay;
                if now_ms >= seen_ms { witness(2, seen_ms) } else { witness(1, 0) }
            }).collect();
            if gate(2, published_ms, &witnesses, settle_ms, now_ms) == Gate::Open {
                break now_ms;
            }
            now_ms += step_ms;
            prop_assert!(now_ms < published_ms + 600_000 + settle_ms + 2 * step_ms, "it ends");
        };
        for delay in delays {
            prop_assert!(published_ms + delay + settle_ms <= switched_ms);
        }
    }
}
