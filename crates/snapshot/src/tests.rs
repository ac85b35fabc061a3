use std::os::unix::fs::PermissionsExt as _;

use selection::Country;
use selection::pool::{Member, encode};
use trust::{KeyState, NetworkId, PoolEntry, RingKey, TokenKey};

use super::*;

const NOW_MS: u64 = 1_800_000_000_000;
const NETWORK: NetworkId = NetworkId([1; 32]);

fn pool(id: u8) -> Vec<u8> {
    let member = Member {
        provider: name(id),
        epoch: 1,
        connected_at_ms: 1,
        relay: "relay:443".into(),
        country: Country::UNKNOWN,
        verified: false,
        identity: [id; 64],
    };
    encode(&[&member])
}

fn name(id: u8) -> uuid::Uuid {
    uuid::Uuid::from_u128(id.into())
}

fn generation(key: &TokenKey, number: u64, pools: &[(&str, Vec<u8>)]) -> Generation {
    let entry = |(name, bytes): &(&str, Vec<u8>)| PoolEntry {
        name: (*name).into(),
        hash: BlobHash::of(bytes),
        listed: 1,
        connected: 1,
        verified: 0,
    };
    let manifest = PoolManifest {
        network: NETWORK,
        number,
        built_at_ms: NOW_MS,
        every_ms: 1_000,
        registered: 1,
        pools: pools.iter().map(entry).collect(),
    };
    let text = manifest.sign(key).unwrap();
    let mut generation = Generation::new(manifest, text, NOW_MS);
    for (_, bytes) in pools {
        generation.add(BlobHash::of(bytes), bytes.clone().into()).unwrap();
    }
    generation
}

fn ring(key: &TokenKey) -> KeyRing {
    KeyRing::new(NETWORK, 1, 1, vec![RingKey::new(*key.public_key(), KeyState::Signing)]).unwrap()
}

#[test]
fn what_was_kept_comes_back_and_what_is_not_named_any_more_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let (shelf, key) = (Shelf::new(folder.path().join("pools")), TokenKey::generate().unwrap());
    assert!(shelf.read(&ring(&key), NOW_MS).unwrap().is_none());
    shelf.keep(&generation(&key, 1, &[("best", pool(1)), ("de", pool(2))])).unwrap();
    shelf.keep(&generation(&key, 2, &[("best", pool(1)), ("de", pool(3))])).unwrap();
    let kept = shelf.read(&ring(&key), NOW_MS).unwrap().unwrap();
    assert_eq!((kept.manifest().number, kept.members("de")[0].provider), (2, name(3)));
    assert_eq!((kept.missing(), kept.members("fr").len()), (Vec::new(), 0));
    let files: Vec<_> = fs::read_dir(folder.path().join("pools")).unwrap().map(Result::unwrap).collect();
    assert_eq!(files.len(), 3, "two pools and the index");
    for file in files {
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn what_nobody_of_the_network_has_signed_or_is_older_than_a_week_is_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let (shelf, key) = (Shelf::new(folder.path()), TokenKey::generate().unwrap());
    shelf.keep(&generation(&key, 1, &[("best", pool(1))])).unwrap();
    assert!(shelf.read(&ring(&key), NOW_MS + BELIEVED_FOR_MS).unwrap().is_some());
    let late = shelf.read(&ring(&key), NOW_MS + BELIEVED_FOR_MS + 1);
    assert!(matches!(late, Err(NoGeneration::TooOld)), "{late:?}");
    let stranger = shelf.read(&ring(&TokenKey::generate().unwrap()), NOW_MS);
    assert!(matches!(stranger, Err(NoGeneration::Manifest(_))), "{stranger:?}");
    fs::write(folder.path().join(INDEX), "{").unwrap();
    assert!(matches!(shelf.read(&ring(&key), NOW_MS), Err(NoGeneration::Damaged)));
}

#[test]
fn a_pool_with_other_bytes_than_its_name_says_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let (shelf, key) = (Shelf::new(folder.path()), TokenKey::generate().unwrap());
    let kept = generation(&key, 1, &[("best", pool(1)), ("de", pool(2))]);
    shelf.keep(&kept).unwrap();
    fs::write(shelf.blob(BlobHash::of(&pool(1))), pool(9)).unwrap();
    let read = shelf.read(&ring(&key), NOW_MS).unwrap().unwrap();
    assert_eq!((read.members("best").len(), read.members("de").len()), (0, 1));
    assert_eq!(read.missing(), [BlobHash::of(&pool(1))]);
    let mut other = kept.clone();
    assert!(matches!(other.add(BlobHash::of(&pool(1)), pool(2).into()), Err(NoGeneration::OtherBytes)));
    assert!(matches!(other.add(BlobHash::of(b"HFP2"), b"HFP2"[..].into()), Err(NoGeneration::Blob(_))));
}

#[test]
fn the_next_generation_takes_over_what_is_the_same() {
    let key = TokenKey::generate().unwrap();
    let before = generation(&key, 1, &[("best", pool(1)), ("de", pool(2))]);
    let full = generation(&key, 2, &[("best", pool(3)), ("de", pool(2))]);
    let mut next = Generation::new(full.manifest().clone(), full.text().to_owned(), NOW_MS);
    next.take_from(&before);
    assert_eq!(next.missing(), [BlobHash::of(&pool(3))]);
}
