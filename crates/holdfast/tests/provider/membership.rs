//! Who is who: copies of a state folder, stolen tokens, revocation, lost relays.

use crate::relay_support::echo;
use crate::support::{Home, Running, SOON, allow};
use client::{Code, Identification, Link, LinkError};
use provider::control::Command;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use trust::{Identity, KeyRing, KeyState, RevocationList, Revoked, RingKey, Role};

#[tokio::test(flavor = "multi_thread")]
async fn of_two_copies_of_a_state_folder_the_newest_start_stays_and_the_other_stays_away() {
    let home = Home::start().await;
    let first = home.provider("").await;
    let copy = Running::start(first.folder.copy(), "");
    copy.until("connected", |status| status.link.state == "connected").await;
    let held = first.until("held", |status| status.held.is_some()).await;
    assert_eq!(held.held.as_ref().unwrap().code, "superseded");
    assert!(held.to_string().contains("REFUSED"), "the owner is told: {held}");
    // It does not come back by itself: neither now nor at its next start.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(first.status().await.link.connections, 1);
    let folder = first.stop().await;
    let first = Running::start(folder, "");
    first.until("held", |status| status.link.state == "held").await;
    assert_eq!(copy.status().await.link.state, "connected");
    // Its owner says that this is the one.
    first.tell(Command::Retry).await;
    first.until("connected", |status| status.link.state == "connected").await;
    copy.until("held", |status| status.held.is_some()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_folder_runs_once() {
    let home = Home::start().await;
    let provider = home.provider("").await;
    let second =
        provider::run(provider.folder.state.clone(), None, std::future::pending()).await.unwrap_err();
    assert!(second.to_string().contains("in use"), "{second}");
    assert_eq!(provider.status().await.link.state, "connected");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stolen_token_is_worth_nothing_without_the_keys() {
    let home = Home::start().await;
    let provider = home.provider("").await;
    let thief = |identity: Identity| Identification {
        network: home.network.network(),
        client: provider.client(),
        role: Role::Provider,
        identity: Arc::new(identity),
        token: provider.token(),
        epoch: u64::MAX / 2,
        software: "thief".into(),
    };
    let address = home.network.address.to_string();
    let refused = Link::connect(&address, thief(Identity::generate().unwrap()), None).await.unwrap_err();
    assert!(matches!(refused, LinkError::Refused { code: Code::TokenInvalid, .. }), "{refused}");
    let status = provider.status().await;
    assert_eq!(
        (status.link.state.as_str(), status.link.connections),
        ("connected", 1),
        "nobody is disturbed"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_provider_stops_dialling_and_tells_its_owner() {
    let home = Home::start().await;
    let provider = home.provider("").await;
    let client = provider.client();
    let keys = home.network.keys.borrow().clone();
    let ring = KeyRing::new(
        keys.network,
        2,
        0,
        vec![RingKey::new(*home.network.token_key.public_key(), KeyState::Signing)],
    );
    let revoked = Revoked { client, before_s: u64::MAX / 2_000 };
    let list = RevocationList::new(keys.network, 2, 0, [revoked]).unwrap();
    home.network.keys.send_replace(Arc::new(relay::Keys::new(keys.network, ring.unwrap(), list)));
    let status = provider.until("held", |status| status.held.is_some()).await;
    assert_eq!(status.held.as_ref().unwrap().code, "revoked");
    // The relay tells its counts twice a second.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = home.network.status.borrow().accepted;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let later = home.network.status.borrow().accepted;
    assert_eq!(later, before, "it dials no more");
    assert!(provider.status().await.next().contains("join"), "what its owner can do is said");
}

#[tokio::test(flavor = "multi_thread")]
async fn it_comes_back_when_its_relay_does_and_streams_go_again() {
    let home = Home::start().await;
    let target = echo().await;
    let provider = home.provider(&allow(&[target])).await;
    let address = home.network.address;
    home.network.stop.send_replace(relay::Stop::Now);
    provider.until("waiting", |status| status.link.state != "connected").await;
    let second = crate::relay_support::Network::with(|config| config.listen = address).await;
    // Another network stands there: it does not fall for it.
    let status = provider
        .until("told", |status| status.link.last_error.as_deref().is_some_and(|error| error.contains("TLS")))
        .await;
    assert!(status.held.is_none(), "a stranger's certificate is no word of the network");
    tokio::time::timeout(SOON, async { drop(second) }).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn where_only_http_passes_it_carries_streams_inside_a_websocket() {
    let home = Home::start().await;
    let target = echo().await;
    let config = format!("[link]\ntransport = \"websocket\"\n[egress]\nallow_exact = [\"{target}\"]\n");
    let provider = home.provider(&config).await;
    let status = provider.until("connected", |status| status.link.state == "connected").await;
    assert_eq!(status.link.transport.as_deref(), Some("WebSocket"));
    let mut stream = home.open(&provider, &target.to_string()).await.unwrap();
    stream.write_all(b"there and back").await.unwrap();
    let mut back = [0; 14];
    stream.read_exact(&mut back).await.unwrap();
    assert_eq!(&back, b"there and back");
}
