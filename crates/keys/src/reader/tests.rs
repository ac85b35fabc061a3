use super::*;
use std::collections::VecDeque;
use std::sync::Mutex;
use trust::{KeyState, Revoked, RingKey, RootKey, TokenKey};

/// A database that answers as the test says, and counts what it is asked.
#[derive(Clone, Default)]
struct Script(Arc<Mutex<Scripted>>);

#[derive(Default)]
struct Scripted {
    stalled: bool,
    ring: Option<(u64, String)>,
    revocations: Option<(u64, String)>,
    clients: VecDeque<ClientStanding>,
    whole: Vec<ClientStanding>,
    asked: Vec<bool>,
    asked_at: Vec<tokio::time::Instant>,
    documents: usize,
    under_way: usize,
    cursor: Option<ChangeCursor>,
}

impl Script {
    fn with<T>(&self, work: impl FnOnce(&mut Scripted) -> T) -> T {
        work(&mut self.0.lock().unwrap())
    }

    /// The database has one more client whose standing has changed.
    fn change(&self, client: ClientId, refused: Option<ClientRefusal>) {
        let refused = refused.map(|why| (why, unix_ms()));
        self.with(|script| script.clients.push_back(ClientStanding { client, refused }));
    }
}

/// A cursor can only be had from a database; the script's is whatever it is told.
fn cursor() -> ChangeCursor {
    ChangeCursor::beginning()
}

impl Source for Script {
    async fn changes(&self, asked: Option<ChangeCursor>, _: u64) -> Result<Changes, StoreError> {
        let stalled = self.with(|script| {
            script.asked.push(asked.is_none());
            script.asked_at.push(tokio::time::Instant::now());
            script.under_way += 1;
            assert_eq!(script.under_way, 1, "one read at a time");
            script.stalled
        });
        if stalled {
            sleep(Duration::from_secs(5)).await;
        }
        self.with(|script| {
            script.under_way -= 1;
            if stalled {
                return Err(StoreError::AcquireDeadline { limit_ms: 5_000 });
            }
            script.cursor = Some(cursor());
            let number =
                |document: &Option<(u64, String)>| document.as_ref().map_or(0, |(number, _)| *number);
            Ok(Changes {
                cursor: cursor(),
                ring: number(&script.ring),
                revocations: number(&script.revocations),
                clients: if asked.is_none() {
                    script.whole.clone()
                } else {
                    script.clients.drain(..).collect()
                },
                is_whole: asked.is_none(),
            })
        })
    }

    async fn document(&self, document: Document) -> Result<Option<(u64, String)>, StoreError> {
        Ok(self.with(|script| {
            script.documents += 1;
            match document {
                Document::KeyRing => script.ring.clone(),
                Document::Revocations => script.revocations.clone(),
            }
        }))
    }
}

struct Network {
    root: RootKey,
    key: TokenKey,
}

impl Network {
    fn new() -> Self {
        Self { root: RootKey::generate().unwrap(), key: TokenKey::generate().unwrap() }
    }

    fn ring(&self, number: u64) -> (u64, String) {
        let keys = vec![RingKey::new(*self.key.public_key(), KeyState::Signing)];
        (number, KeyRing::new(self.root.network(), number, 1, keys).unwrap().sign(&self.root).unwrap())
    }

    fn revocations(&self, number: u64, clients: &[ClientId]) -> (u64, String) {
        let revoked = clients.iter().map(|&client| Revoked { client, before_s: u64::MAX / 2_000 });
        let list = RevocationList::new(self.root.network(), number, 1, revoked).unwrap();
        (number, list.sign(&self.root).unwrap())
    }
}

async fn seconds(count: u64) {
    sleep(Duration::from_secs(count)).await;
}

#[tokio::test(start_paused = true)]
async fn a_change_is_heard_within_the_interval_and_a_quiet_read_tells_nobody() {
    let (network, script) = (Network::new(), Script::default());
    script.with(|script| {
        (script.ring, script.revocations) = (Some(network.ring(1)), Some(network.revocations(1, &[])));
    });
    let reader = Reader::open(script.clone(), network.root.network(), None).unwrap();
    let (book, mut watch) = (reader.book(), reader.book().watch());
    tokio::spawn(reader.run());
    seconds(1).await;
    assert_eq!((book.known().ring.number(), book.known().revocations.number()), (1, 1));
    assert_eq!(script.with(|script| script.documents), 2);
    watch.borrow_and_update();
    seconds(60).await;
    assert!(!watch.has_changed().unwrap(), "nothing has changed");
    assert_eq!(script.with(|script| script.documents), 2, "documents are read when their number says so");
    assert!(book.known().answered_at_ms.is_some());
    let (disabled, revoked) = (ClientId::random(), ClientId::random());
    script.change(disabled, Some(ClientRefusal::Disabled));
    script.with(|script| script.revocations = Some(network.revocations(2, &[revoked])));
    let before = script.with(|script| script.asked.len());
    tokio::time::timeout(INTERVAL, watch.changed()).await.expect("within the interval").unwrap();
    seconds(1).await;
    assert_eq!(book.known().refusal(disabled, 5), Some(Cause::Disabled));
    assert_eq!(book.known().refusal(revoked, 5), Some(Cause::Revoked));
    assert_eq!(script.with(|script| script.asked.len()) - before, 1, "one read for all of it");
    script.change(disabled, None);
    seconds(INTERVAL.as_secs()).await;
    assert_eq!(book.known().refusal(disabled, 5), None);
}

#[tokio::test(start_paused = true)]
async fn without_an_answer_everything_holds_and_the_database_is_not_asked_more_than_in_health() {
    let (network, script) = (Network::new(), Script::default());
    script.with(|script| script.ring = Some(network.ring(1)));
    let refused = ClientId::random();
    script.with(|script| {
        script.whole =
            vec![ClientStanding { client: refused, refused: Some((ClientRefusal::Disabled, unix_ms())) }];
    });
    let reader = Reader::open(script.clone(), network.root.network(), None).unwrap();
    let (book, hint) = (reader.book(), reader.hint());
    tokio::spawn(reader.run());
    seconds(1).await;
    let mut watch = book.watch();
    watch.borrow_and_update();
    script.with(|script| script.stalled = true);
    let before = script.with(|script| script.asked.len());
    for _ in 0..24 * 60 {
        seconds(60).await;
        hint.notify_one();
    }
    assert!(!watch.has_changed().unwrap(), "a day without an answer changes nothing");
    assert_eq!(book.known().ring.number(), 1);
    assert_eq!(book.known().refusal(refused, 5), Some(Cause::Disabled));
    let asked = script.with(|script| script.asked.len()) - before;
    assert!(
        (24 * 200..=24 * 3_600 / 6).contains(&asked),
        "{asked} times in a day; in health it is at most one in 6 s"
    );
    script.with(|script| script.stalled = false);
    script.change(refused, None);
    seconds(5 + INTERVAL.as_secs()).await;
    assert_eq!(book.known().refusal(refused, 5), None, "and what was missed is heard soon");
}

#[tokio::test(start_paused = true)]
async fn hints_are_heard_at_once_and_a_flood_of_them_costs_a_read_in_two_seconds() {
    let (network, script) = (Network::new(), Script::default());
    let reader = Reader::open(script.clone(), network.root.network(), None).unwrap();
    let hint = reader.hint();
    tokio::spawn(reader.run());
    seconds(4).await;
    let before = script.with(|script| script.asked.len());
    hint.notify_one();
    sleep(Duration::from_millis(10)).await;
    assert_eq!(script.with(|script| script.asked.len()) - before, 1);
    for _ in 0..10_000 {
        hint.notify_one();
        sleep(Duration::from_millis(2)).await;
    }
    let asked = script.with(|script| script.asked.len()) - before - 1;
    assert!((5..=11).contains(&asked), "{asked} reads in 20 s");
}

#[tokio::test(start_paused = true)]
async fn the_first_read_is_whole_and_the_rest_go_by_the_cursor() {
    let (network, script) = (Network::new(), Script::default());
    let reader = Reader::open(script.clone(), network.root.network(), None).unwrap();
    tokio::spawn(reader.run());
    seconds(60).await;
    let whole = script.with(|script| script.asked.iter().filter(|whole| **whole).count());
    assert_eq!(whole, 1);
}

#[tokio::test(start_paused = true)]
async fn a_document_that_does_not_hold_is_not_taken_and_keeps_no_refusal_back() {
    let (network, stranger, script) = (Network::new(), Network::new(), Script::default());
    script.with(|script| script.ring = Some(stranger.ring(9)));
    let refused = ClientId::random();
    script.with(|script| {
        script.whole = vec![ClientStanding {
            client: refused,
            refused: Some((ClientRefusal::AccountDisabled, unix_ms())),
        }];
    });
    let reader = Reader::open(script.clone(), network.root.network(), None).unwrap();
    let book = reader.book();
    tokio::spawn(reader.run());
    seconds(1).await;
    assert_eq!(book.known().ring.number(), 0);
    assert_eq!(book.known().refusal(refused, 5), Some(Cause::AccountDisabled));
    let forged = network.ring(3).1.replace('.', "x.");
    assert!(book.take_ring(&forged).is_err());
    assert!(book.take_ring(&network.ring(3).1).unwrap());
    assert!(!book.take_ring(&network.ring(2).1).unwrap(), "an older one is not taken");
    assert_eq!(book.known().ring.number(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_start_without_the_database_knows_what_was_known() {
    let (network, script) = (Network::new(), Script::default());
    let folder = tempfile::tempdir().unwrap();
    let (disabled, revoked) = (ClientId::random(), ClientId::random());
    script.with(|script| {
        script.ring = Some(network.ring(4));
        script.revocations = Some(network.revocations(7, &[revoked]));
        script.whole =
            vec![ClientStanding { client: disabled, refused: Some((ClientRefusal::Disabled, unix_ms())) }];
    });
    let reader = Reader::open(script.clone(), network.root.network(), Some(folder.path())).unwrap();
    let running = tokio::spawn(reader.run());
    seconds(1).await;
    running.abort();
    script.with(|script| (script.stalled, script.under_way) = (true, 0));
    let reader = Reader::open(script, network.root.network(), Some(folder.path())).unwrap();
    let book = reader.book();
    tokio::spawn(reader.run());
    seconds(30).await;
    let known = book.known();
    assert_eq!((known.ring.number(), known.revocations.number()), (4, 7));
    assert_eq!(known.refusal(disabled, 5), Some(Cause::Disabled));
    assert_eq!(known.refusal(revoked, 5), Some(Cause::Revoked));
    assert!(known.answered_at_ms.is_some() && !known.documents.ring.is_empty());
    // What is damaged on the disk is as good as nothing, and no reason not to start.
    for name in ["refused.json", "key-ring.signed"] {
        std::fs::write(folder.path().join(name), "{").unwrap();
    }
    let known =
        Reader::open(Script::default(), network.root.network(), Some(folder.path())).unwrap().book().known();
    assert_eq!((known.ring.number(), known.revocations.number(), known.leases.len()), (0, 7, 0));
}
