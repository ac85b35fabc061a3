//! Keys that change and clients that are put out, seen from the api's clients.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "support/support.rs"]
mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use client::Membership;
use keys::{Custody, CustodyError, Reader, RotateOptions, Step};
use store::catalogue::Writer;
use store::{Beat, Document};
use support::{Ask, House, PASSWORD, PATIENCE, now_ms, refusal_of_member};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, sleep, timeout};
use trust::api::ErrorCode;
use trust::{ClientClaims, KeyRing, KeyState, RelayId, Role, RootKey, TokenKey};

/// Retries of a credential that was refused for good.
const RETRIES: usize = 10_000;
/// Requests that are written before their answers are read.
const AT_ONCE: usize = 100;

/// Each retry used to cost the database its full work.
#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_retries_of_one_refused_token_cost_one_read() {
    let house = House::start().await;
    let member = house.member(Role::Provider, None).await;
    let bearer = house.bearer("operator", PASSWORD).await;
    let client = member.membership.client();
    let act = |what: &str| {
        Ask::post(&format!("/v1/clients/{client}/{what}"), "")
            .header("authorization", format!("Bearer {bearer}"))
    };
    assert_eq!(house.ask(&act("disable")).await.status, 200);
    let before = house.relay.counts().bytes_up;
    let begun = Instant::now();
    let refused = hammer(&house, &member.membership, RETRIES).await;
    assert_eq!(refused, RETRIES, "each is told why");
    let spent = house.relay.counts().bytes_up - before;
    // One look-up takes half a kilobyte; beats and the reader's questions go on meanwhile.
    let bar = 20_000 + begun.elapsed().as_secs() * 2_000;
    assert!(spent < bar, "{spent} bytes went to the database in {:?}", begun.elapsed());
    // And it is no longer refused once it may come in again.
    assert_eq!(house.ask(&act("enable")).await.status, 200);
    let back = timeout(PATIENCE, async {
        while member.membership.refresh().await.is_err() {
            sleep(Duration::from_millis(100)).await;
        }
    });
    back.await.unwrap();
}

/// Asks for a fresh token again and again on one connection; how often the answer was that the client is disabled.
async fn hammer(house: &House, membership: &Membership, count: usize) -> usize {
    let ask = Ask::post("/v1/token", r#"{"epoch": 1}"#).signed(
        &membership.token(),
        membership.identity(),
        house.network,
        now_ms(),
    );
    let mut text = format!("POST {} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n", ask.path, ask.body.len());
    for (name, value) in &ask.headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    let request = [text.as_bytes(), &ask.body].concat();
    let mut stream = house.dial().await.unwrap();
    let (mut refused, mut answers) = (0, Vec::new());
    for _ in 0..count / AT_ONCE {
        stream.write_all(&request.repeat(AT_ONCE)).await.unwrap();
        stream.flush().await.unwrap();
        let mut heard = 0;
        while heard < AT_ONCE {
            let mut bytes = vec![0; 64 * 1024];
            let length = timeout(PATIENCE, stream.read(&mut bytes)).await.unwrap().unwrap();
            assert!(length > 0, "the connection was ended");
            answers.extend_from_slice(&bytes[..length]);
            let text = String::from_utf8_lossy(&answers).into_owned();
            heard += text.matches("\"code\":").count();
            refused += text.matches("\"code\":\"client_disabled\"").count();
            // What is left may be the start of an answer.
            let end = text.rfind("\"code\":").map_or(0, |at| at + 7);
            let rest = text.rfind("\"code\":\"client_disabled\"").map_or(0, |at| at + 24).max(end);
            answers = answers.split_off(rest.min(answers.len()));
        }
    }
    refused
}

/// Servers that had started before a new key rejected every token of it until they were started again.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_a_key_that_is_not_known_makes_the_ring_be_read_and_is_never_refused_for_good() {
    let house = House::start().await;
    let member = house.member(Role::App, None).await;
    let stranger = TokenKey::generate().unwrap();
    let claims = ClientClaims {
        network: house.network,
        client: member.membership.client(),
        role: Role::App,
        thumbprint: member.membership.identity().public().thumbprint(),
        epoch: 0,
        issued_at_s: now_ms() / 1_000,
        expires_at_s: now_ms() / 1_000 + 3_600,
    };
    let token = claims.sign(&stranger).unwrap();
    let ask =
        || Ask::get("/v1/locations").signed(&token, member.membership.identity(), house.network, now_ms());
    let before = house.relay.counts().bytes_up;
    let begun = Instant::now();
    for _ in 0..200 {
        assert_eq!(house.ask(&ask()).await.refusal(), (503, "unavailable"));
    }
    let spent = house.relay.counts().bytes_up - before;
    let bar = 10_000 + begun.elapsed().as_secs() * 3_000;
    assert!(spent < bar, "{spent} bytes in {:?}: at most one read in 2 s", begun.elapsed());
    // Another process publishes the key.
    let ring = KeyRing::verify(&house.api().trust().await.unwrap().key_ring, house.network).unwrap();
    let next = ring.with_coming(*stranger.public_key(), now_ms() / 1_000).unwrap();
    let text = next.sign(&house.root).unwrap();
    assert!(
        house.store(Writer::Api).put_trust_document(Document::KeyRing, next.number(), text).await.unwrap()
    );
    let begun = Instant::now();
    while house.ask(&ask()).await.status != 200 {
        assert!(begun.elapsed() < PATIENCE, "it is never read");
        sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disabled_account_puts_its_clients_out_and_they_come_back_when_it_is_enabled() {
    let house = House::start().await;
    let operator = house.bearer("operator", PASSWORD).await;
    let ask = |path: &str, body: &str, bearer: &str| {
        Ask::post(path, body).header("authorization", format!("Bearer {bearer}"))
    };
    let made = house
        .ask(&ask("/v1/accounts", r#"{"name": "customer", "password": "a long enough one"}"#, &operator))
        .await;
    let account = made.body["account"].as_str().unwrap().to_owned();
    let bearer = house.bearer("customer", "a long enough one").await;
    let code = house.ask(&ask("/v1/join-codes", r#"{"role": 2}"#, &bearer)).await;
    let folder = tempfile::tempdir().unwrap();
    let joining = client::Joining {
        link: house.link(),
        role: Role::App,
        code: code.body["code"].as_str().unwrap().parse().unwrap(),
        label: "test".into(),
        country: None,
    };
    let member = Membership::join(&folder.path().join("m"), &joining).await.unwrap();
    let act = |what: &str, bearer: &str| ask(&format!("/v1/accounts/{account}/{what}"), "", bearer);
    assert_eq!(house.ask(&act("disable", &bearer)).await.refusal(), (403, "forbidden"), "operators alone");
    assert_eq!(house.ask(&act("disable", &operator)).await.status, 200);
    for _ in 0..2 {
        assert_eq!(refusal_of_member(&member.refresh().await.unwrap_err()), ErrorCode::AccountDisabled);
        let show = Ask::get("/v1/accounts").header("authorization", format!("Bearer {bearer}"));
        assert_eq!(house.ask(&show).await.refusal(), (403, "account_disabled"));
    }
    assert_eq!(house.ask(&act("enable", &operator)).await.status, 200);
    let back = timeout(PATIENCE, async {
        while member.refresh().await.is_err() {
            sleep(Duration::from_millis(100)).await;
        }
    });
    back.await.unwrap();
    let me = house.ask(&Ask::get("/v1/accounts").header("authorization", format!("Bearer {operator}"))).await;
    let own = format!("/v1/accounts/{}/disable", me.body["account"].as_str().unwrap());
    assert_eq!(house.ask(&ask(&own, "", &operator)).await.refusal(), (403, "forbidden"));
}

/// As the holder of the root key.
fn custody(house: &House) -> Custody {
    let folder = house.folder.path();
    let root = RootKey::from_seed(house.root.seed()).unwrap();
    let (first, further) = (folder.join("token.key"), folder.join("token-keys"));
    Custody::new(house.store(Writer::Api), root, first, Some(further))
}

/// The key that a token says it is signed by.
fn key_of(token: &str) -> String {
    let header = BASE64_URL_SAFE_NO_PAD.decode(token.split('.').next().unwrap()).unwrap();
    let header: serde_json::Value = serde_json::from_slice(&header).unwrap();
    header["kid"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn under_continuous_refreshes_a_rotation_refuses_no_token_is_taken_up_again_and_waits_for_no_dead() {
    let mut house = House::start().await;
    house.down().await;
    house.config.token_keys = Some(house.folder.path().join("token-keys"));
    house.up().await;
    let member = house.member(Role::App, None).await;
    let first = key_of(&member.membership.token());
    // A relay that started before, and says what it holds; one that died just now; an older one that is long gone.
    let reader = Reader::open(house.store(Writer::Relay), house.network, None).unwrap();
    let book = reader.book();
    tokio::spawn(reader.run());
    timeout(PATIENCE, book.watch().wait_for(|known| known.ring.number() > 0)).await.unwrap().unwrap();
    let (relays, living) = (house.store(Writer::Relay), RelayId::random());
    let beat = move |relay, ring| Beat {
        relay,
        epoch: 1,
        address: "127.0.0.1:7540".into(),
        connections: 0,
        draining: false,
        started_at_ms: 1,
        ring,
        revocations: 1,
    };
    relays.beat(beat(RelayId::random(), 1)).await.unwrap();
    house.postgres.admin("update relay_beat set beat_at = now() - interval '27 s'").unwrap();
    let (known, beating) = (book.clone(), relays.clone());
    tokio::spawn(async move {
        loop {
            beating.beat(beat(living, known.known().ring.number())).await.unwrap();
            sleep(Duration::from_millis(200)).await;
        }
    });
    let stop = Arc::new(AtomicBool::new(false));
    let rotating = async {
        let options = RotateOptions { settle_ms: 2_000, limit: PATIENCE * 3 };
        // The first one is stopped as soon as the key is published.
        let (told, published) = tokio::sync::oneshot::channel();
        let mut told = Some(told);
        let custody_of_first = custody(&house);
        let interrupted = custody_of_first.rotate(options, |step| {
            if let Step::Published(key, _) = step {
                let _ = told.take().unwrap().send(key);
            }
        });
        let key = tokio::select! {
            ended = interrupted => panic!("{ended:?}"),
            key = published => key.unwrap(),
        };
        let mut steps = Vec::new();
        let done = custody(&house).rotate(options, |step| steps.push(step)).await.unwrap();
        assert_eq!(steps[0], Step::TakenUp(key), "{steps:?}");
        assert!(steps.iter().any(|step| matches!(step, Step::Settling(_))), "{steps:?}");
        assert_eq!(done.key, key.to_string());
        // A little longer, now that it signs.
        sleep(Duration::from_secs(1)).await;
        stop.store(true, Ordering::Relaxed);
        done
    };
    let refreshing = async {
        let mut tokens = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            member.membership.refresh().await.unwrap();
            let token = member.membership.token();
            // The relay's word.
            ClientClaims::verify(&token, &book.known().ring, now_ms()).unwrap();
            tokens.push(token);
            sleep(Duration::from_millis(20)).await;
        }
        tokens
    };
    let (done, tokens) = timeout(PATIENCE * 6, async { tokio::join!(rotating, refreshing) }).await.unwrap();
    assert_eq!((key_of(&tokens[0]), key_of(tokens.last().unwrap())), (first, done.key.clone()));
    assert!(tokens.len() > 50, "{}", tokens.len());
    // The relay reads at its own pace.
    let signs = || book.known().ring.signing().is_some_and(|key| key.id.to_string() == done.key);
    timeout(PATIENCE * 2, async {
        while !signs() {
            sleep(Duration::from_millis(100)).await;
        }
    })
    .await
    .unwrap();
    let ring = &book.known().ring;
    // All of them hold still.
    assert!(tokens.iter().all(|token| ClientClaims::verify(token, ring, now_ms()).is_ok()));
    let states: Vec<_> = ring.keys().iter().map(|key| key.state).collect();
    assert_eq!(states, [KeyState::Retired, KeyState::Signing]);
    // A restart signs with the new one, too.
    house.down().await;
    house.up().await;
    member.membership.refresh().await.unwrap();
    assert_eq!(key_of(&member.membership.token()), done.key);
    // Revocation waits for those who live; here the living relay hears of it by its reader, and says so with its ring only.
    let late = custody(&house).revoke(member.membership.client(), Some(Duration::from_secs(3)), |_| {}).await;
    assert!(matches!(late, Err(CustodyError::TooLong { .. })), "{late:?}");
    let refused = timeout(PATIENCE, async {
        while member.membership.refresh().await.is_ok() {
            sleep(Duration::from_millis(100)).await;
        }
    });
    refused.await.unwrap();
}
