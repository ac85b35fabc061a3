use std::os::unix::fs::PermissionsExt as _;

use super::*;

const NETWORK: NetworkId = NetworkId([7; 32]);
const NOW_MS: u64 = 1_000_000_000_000;

#[test]
fn whoever_was_admitted_is_known_after_a_restart_for_seven_days() {
    let folder = tempfile::tempdir().unwrap();
    let (proxy, account) = (ClientId::random(), AccountId::random());
    let mut known = Known::open(NETWORK, Some(folder.path()));
    known.keep(Payer::new(proxy, Some("shop"), account, NOW_MS));
    known.keep(Payer::new(proxy, Some("shop"), account, NOW_MS + 1));
    known.unsaved().unwrap().save().unwrap();
    assert!(known.unsaved().is_none(), "nothing has changed");
    let mode = fs::metadata(folder.path().join(FILE)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let known = Known::open(NETWORK, Some(folder.path()));
    assert!(known.payer(proxy, Some("shop"), NOW_MS).is_some());
    assert_eq!(known.payer(proxy, None, NOW_MS), None);
    assert_eq!(known.payer(proxy, Some("shop"), NOW_MS + 1 + KNOWN_FOR_MS), None);
    let other = Known::open(NetworkId([8; 32]), Some(folder.path()));
    assert_eq!(other.payer(proxy, Some("shop"), NOW_MS), None);
}

#[test]
fn whoever_would_not_be_admitted_is_forgotten() {
    let mut known = Known::open(NETWORK, None);
    let (one, two, account) = (ClientId::random(), ClientId::random(), AccountId::random());
    for (client, login) in [(one, "shop"), (one, "other"), (two, "shop")] {
        known.keep(Payer::new(client, Some(login), account, NOW_MS));
    }
    let all = known.least_recently_looked_at(10);
    let unfit = Unfit { logins: vec!["other".into()], ..Unfit::default() };
    known.looked_at(&all, &unfit, NOW_MS + 5);
    assert!(known.payer(one, Some("other"), NOW_MS).is_none());
    let unfit = Unfit { clients: vec![two], ..Unfit::default() };
    known.looked_at(&all, &unfit, NOW_MS + 5);
    let is_known = |known: &Known, client| known.payer(client, Some("shop"), NOW_MS).is_some();
    assert!(!is_known(&known, two) && is_known(&known, one));
    let unfit = Unfit { accounts: vec![account], ..Unfit::default() };
    known.looked_at(&all, &unfit, NOW_MS + 5);
    assert!(!is_known(&known, one) && known.count == 0);
}

#[test]
fn as_many_are_known_as_may_and_the_oldest_make_room() {
    let mut known = Known::open(NETWORK, None);
    let (proxy, account) = (ClientId::random(), AccountId::random());
    for number in 0..=MOST_KNOWN as u64 {
        let mut payer = Payer::new(proxy, None, account, NOW_MS + number);
        payer.client = ClientId::random();
        known.keep(payer);
        assert!(known.count <= MOST_KNOWN);
    }
    let oldest = known.payers.values().flatten().map(|payer| payer.looked_at_ms).min().unwrap();
    assert_eq!(oldest, NOW_MS + MOST_KNOWN as u64 / 10);
}
