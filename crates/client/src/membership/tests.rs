use super::*;
use crate::fixtures::{Answer, Seen, Server};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use trust::api::{ErrorAnswer, ErrorCode, RegisterAnswer, path};
use trust::{KeyState, PublicIdentity, RingKey, RootKey, TokenKey};

const CODE: &str = "01ABC-DEFGH-JKMNP-QRSTV";

#[tokio::test]
async fn who_has_joined_is_found_again_from_disk_without_the_network() {
    let server = network(RootKey::generate().unwrap(), 1, 0).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("provider");
    let joined = Membership::join(&path, &joining(&server)).await.unwrap();
    let (client, link) = (joined.client(), server.link());
    drop(joined);
    drop(server);
    let opened = Membership::open(&path).unwrap();
    assert_eq!((opened.client(), opened.link(), opened.role()), (client, &link, Role::Provider));
    assert_eq!((opened.token(), opened.relays()), ("token 1".to_owned(), vec!["127.0.0.1:1".to_owned()]));
    assert_eq!(opened.key_ring().number(), 1);
}

#[tokio::test]
async fn the_registration_is_signed_by_the_keys_that_it_registers() {
    let server = network(RootKey::generate().unwrap(), 1, 0).await;
    let folder = tempfile::tempdir().unwrap();
    let joined = Membership::join(folder.path(), &joining(&server)).await.unwrap();
    let request = registration(&server.seen()[0]);
    let identity: PublicIdentity = request.identity.parse().unwrap();
    assert_eq!(&identity, joined.identity().public());
    let proof: Proof = request.proof.parse().unwrap();
    assert!(proof.is_registration(&identity, server.network(), RequestId(request.request), Role::Provider));
    assert_eq!(request.code, CODE);
}

/// The answer was lost: whoever asks again must not become a second client.
#[tokio::test]
async fn a_try_without_an_answer_is_taken_up_with_the_same_keys_and_request() {
    let server = network(RootKey::generate().unwrap(), 1, 1).await;
    let folder = tempfile::tempdir().unwrap();
    let lost = Membership::join(folder.path(), &joining(&server)).await.unwrap_err();
    assert!(!is_refused_for_good(&lost), "{lost}");
    Membership::join(folder.path(), &joining(&server)).await.unwrap();
    let seen: Vec<_> = server.seen().iter().map(registration).collect();
    assert_eq!(seen.len(), 2);
    assert_eq!((seen[0].request, &seen[0].identity), (seen[1].request, &seen[1].identity));
    let again = Membership::join(folder.path(), &joining(&server)).await.unwrap_err();
    assert!(matches!(again, MembershipError::AlreadyMember { .. }), "{again}");
}

#[tokio::test]
async fn secrets_are_readable_by_their_owner_only() {
    let server = network(RootKey::generate().unwrap(), 1, 0).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let _joined = Membership::join(&path, &joining(&server)).await.unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
    for file in fs::read_dir(&path).unwrap() {
        let file = file.unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", file.file_name());
    }
}

#[tokio::test]
async fn one_process_holds_a_folder() {
    let server = network(RootKey::generate().unwrap(), 1, 0).await;
    let folder = tempfile::tempdir().unwrap();
    let joined = Membership::join(folder.path(), &joining(&server)).await.unwrap();
    assert!(matches!(Membership::open(folder.path()).unwrap_err(), MembershipError::InUse(_)));
    assert_eq!(Glance::at(folder.path()).unwrap().unwrap().client, joined.client(), "others may look");
    drop(joined);
    assert!(Membership::open(folder.path()).is_ok());
    let empty = tempfile::tempdir().unwrap();
    assert!(matches!(Membership::open(empty.path()).unwrap_err(), MembershipError::NotMember(_)));
}

#[tokio::test]
async fn each_start_takes_a_greater_epoch_also_when_the_clock_goes_back() {
    let server = network(RootKey::generate().unwrap(), 1, 0).await;
    let folder = tempfile::tempdir().unwrap();
    let joined = Membership::join(folder.path(), &joining(&server)).await.unwrap();
    let first = joined.take_epoch().unwrap();
    drop(joined);
    let record = folder.path().join("membership.json");
    let ahead = first + 86_400_000;
    let text = fs::read_to_string(&record).unwrap().replace(&first.to_string(), &ahead.to_string());
    fs::write(&record, text).unwrap();
    assert_eq!(Membership::open(folder.path()).unwrap().take_epoch().unwrap(), ahead + 1);
}

#[tokio::test]
async fn a_refresh_brings_a_token_and_newer_documents_and_refuses_older_ones() {
    let root = RootKey::generate().unwrap();
    let seed = *root.seed();
    let server = network(root, 5, 0).await;
    let folder = tempfile::tempdir().unwrap();
    let joined = Membership::join(folder.path(), &joining(&server)).await.unwrap();
    joined.refresh().await.unwrap();
    assert_eq!(joined.token(), "token 2");
    drop(joined);
    // The same network, with documents of an earlier day.
    let older = network(RootKey::from_seed(&seed).unwrap(), 4, 0).await;
    let record = folder.path().join("membership.json");
    let link = server.link().to_string();
    let text = fs::read_to_string(&record).unwrap().replace(&link, &older.link().to_string());
    fs::write(&record, text).unwrap();
    let joined = Membership::open(folder.path()).unwrap();
    let error = joined.refresh().await.unwrap_err();
    assert!(
        matches!(error, MembershipError::Document(DocumentError::Older { held: 5, offered: 4 })),
        "{error}"
    );
    assert_eq!(joined.key_ring().number(), 5);
}

#[tokio::test]
async fn a_revoked_client_stops_asking() {
    let root = RootKey::generate().unwrap();
    let answers = answers(RootKey::from_seed(root.seed()).unwrap(), 1, 0);
    let server = Server::start_under(root, move |seen| match seen.path.as_str() {
        path::TOKEN => Answer {
            status: 403,
            body: serde_json::to_string(&ErrorAnswer {
                code: ErrorCode::Revoked,
                cause: "by the operator".to_owned(),
                retry_after_ms: None,
            })
            .unwrap(),
        },
        _ => answers(seen),
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let joined = Membership::join(folder.path(), &joining(&server)).await.unwrap();
    let ended = tokio::time::timeout(std::time::Duration::from_secs(5), joined.keep_fresh()).await.unwrap();
    assert!(ended.to_string().contains("by the operator"), "{ended}");
}

fn joining(server: &Server) -> Joining {
    Joining {
        link: server.link(),
        role: Role::Provider,
        code: CODE.parse().unwrap(),
        label: "attic".to_owned(),
        country: None,
    }
}

fn registration(seen: &Seen) -> RegisterRequest {
    serde_json::from_slice(&seen.body).unwrap()
}

/// An api with documents of that number, that loses its first answers.
async fn network(root: RootKey, number: u64, lost: usize) -> Server {
    let answers = answers(RootKey::from_seed(root.seed()).unwrap(), number, lost);
    Server::start_under(root, answers).await
}

fn answers(root: RootKey, number: u64, lost: usize) -> impl Fn(&Seen) -> Answer + Send + Sync {
    let asked = AtomicUsize::new(0);
    let (token, key) = (AtomicUsize::new(0), TokenKey::generate().unwrap());
    move |seen| {
        if asked.fetch_add(1, Ordering::Relaxed) < lost {
            return Answer { status: 504, body: "gateway".to_owned() };
        }
        let ring = vec![RingKey::new(*key.public_key(), KeyState::Signing)];
        let trust = TrustAnswer {
            key_ring: KeyRing::new(root.network(), number, 0, ring).unwrap().sign(&root).unwrap(),
            revocations: RevocationList::new(root.network(), number, 0, []).unwrap().sign(&root).unwrap(),
        };
        let token = || TokenAnswer {
            token: format!("token {}", token.fetch_add(1, Ordering::Relaxed) + 1),
            expires_at_ms: 10,
            refresh_after_ms: 5,
            relays: vec!["127.0.0.1:1".to_owned()],
            now_ms: 0,
        };
        Answer::json(&match seen.path.as_str() {
            path::TRUST => serde_json::to_string(&trust).unwrap(),
            path::TOKEN => serde_json::to_string(&token()).unwrap(),
            _ => {
                let client = ClientId::from_bytes([9; 16]).0;
                serde_json::to_string(&RegisterAnswer { client, token: token(), trust }).unwrap()
            }
        })
    }
}
