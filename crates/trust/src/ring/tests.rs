use super::*;
use crate::signed::TokenKey;

#[test]
fn a_ring_is_taken_from_the_networks_root_only() {
    let (root, stranger) = (RootKey::generate().unwrap(), RootKey::generate().unwrap());
    let ring = ring(root.network(), 3);
    let document = ring.sign(&root).unwrap();
    assert_eq!(KeyRing::verify(&document, root.network()), Ok(ring.clone()));
    assert_eq!(KeyRing::verify(&document, stranger.network()), Err(DocumentError::OtherNetwork));
    assert_eq!(ring.sign(&stranger), Err(DocumentError::OtherNetwork));
    // A stranger's document with the name of our network inside.
    let forged = stranger.signer().sign(Kind::KeyRing, &ring).unwrap();
    assert_eq!(KeyRing::verify(&forged, root.network()), Err(DocumentError::OtherNetwork));
    assert_eq!(KeyRing::verify(&forged, stranger.network()), Err(DocumentError::OtherNetwork));
    // Our root key in the header of what a stranger signed.
    let (_, rest) = forged.split_once('.').unwrap();
    let swapped = format!("{}.{rest}", document.split('.').next().unwrap());
    assert_eq!(KeyRing::verify(&swapped, root.network()), Err(DocumentError::Signature));
}

#[test]
fn an_older_document_never_replaces_a_newer_one() {
    let network = NetworkId([1; 32]);
    let mut held = ring(network, 3);
    assert_eq!(held.replace(ring(network, 2)), Err(DocumentError::Older { held: 3, offered: 2 }));
    assert_eq!(held.replace(ring(network, 3)), Ok(false));
    assert_eq!(held.replace(ring(network, 4)), Ok(true));
    assert_eq!(held.number(), 4);
    assert_eq!(held.replace(ring(NetworkId([2; 32]), 9)), Err(DocumentError::OtherNetwork));
}

#[test]
fn a_key_under_a_name_that_is_not_its_hash_is_refused() {
    let network = NetworkId([1; 32]);
    let mut key = RingKey::new([9; 32], KeyState::Signing);
    key.id = KeyId([0; 16]);
    assert_eq!(KeyRing::new(network, 1, 0, vec![key]), Err(DocumentError::Malformed));
}

#[test]
fn rings_and_lists_have_a_bound() {
    let network = NetworkId([1; 32]);
    let keys = |count| (0..count).map(|at| RingKey::new([at as u8; 32], KeyState::Retired)).collect();
    assert!(KeyRing::new(network, 1, 0, keys(MAX_KEYS)).is_ok());
    assert_eq!(KeyRing::new(network, 1, 0, keys(MAX_KEYS + 1)), Err(DocumentError::TooMany(MAX_KEYS)));
    let entries = |count: usize| (0..count).map(|at| Revoked { client: client(at), before_s: 7 });
    let root = RootKey::generate().unwrap();
    let largest = RevocationList::new(root.network(), 1, 0, entries(MAX_REVOKED)).unwrap();
    assert_eq!(RevocationList::verify(&largest.sign(&root).unwrap(), root.network()), Ok(largest));
    let more = RevocationList::new(network, 1, 0, entries(MAX_REVOKED + 1));
    assert_eq!(more, Err(DocumentError::TooMany(MAX_REVOKED)));
}

#[test]
fn a_revocation_strikes_the_tokens_made_before_it() {
    let list = RevocationList::new(NetworkId([1; 32]), 1, 0, [Revoked { client: client(1), before_s: 100 }])
        .unwrap();
    assert!(list.revokes(client(1), 99));
    assert!(!list.revokes(client(1), 100), "a token made after the leak was mended");
    assert!(!list.revokes(client(2), 99));
}

fn ring(network: NetworkId, number: u64) -> KeyRing {
    let key = TokenKey::from_seed(&[number as u8; 32]).unwrap();
    KeyRing::new(network, number, 5, vec![RingKey::new(*key.public_key(), KeyState::Signing)]).unwrap()
}

fn client(number: usize) -> ClientId {
    ClientId(uuid::Uuid::from_u128(number as u128))
}
