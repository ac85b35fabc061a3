use trust::Role;

use super::*;
use crate::testing::{Database, now_ms};
use crate::{Beat, Beaten, Connected};

fn beat(relay: RelayId, epoch: u64) -> Beat {
    let address = "relay:443".to_owned();
    Beat {
        relay,
        epoch,
        address,
        connections: 1,
        draining: false,
        started_at_ms: now_ms(),
        ring: 1,
        revocations: 1,
    }
}

async fn look(database: &Database, hold: Option<(&'static str, u64)>) -> RelaysSeen {
    let beat = WorkerBeat { worker: Uuid::from_u128(1), hold, relays: 2, late: 1 };
    database.worker.look_at_relays(beat, 10_000).await.unwrap()
}

fn verdict(seen: &RelaySeen, state: &str) -> RelayVerdict {
    let RelaySeen { relay, epoch, stamp, .. } = *seen;
    RelayVerdict { relay, epoch, stamp, state: state.into(), cause: "refused".into() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_relay_has_nobody_until_it_beats_again_and_a_silent_one_keeps_all() {
    let database = Database::start().await;
    let account = database.account("owner").await;
    let provider = database.client(account, Role::Provider, None).await;
    let (relay, other) = (RelayId::random(), RelayId::random());
    assert_eq!(database.relay.beat(beat(relay, 1)).await.unwrap(), Beaten::New);
    assert_eq!(database.relay.beat(beat(relay, 1)).await.unwrap(), Beaten::Known);
    database.relay.beat(Beat { address: "other:443".into(), ..beat(other, 1) }).await.unwrap();
    let came = Connected { client: provider, epoch: 1, software: "x".into(), at_ms: now_ms() };
    database.relay.record_connections(relay, 1, vec![came], Vec::new()).await.unwrap();
    let connected = async || {
        let listed = database.api.clients(Some(account)).await.unwrap()[0].connected;
        let found = database.api.candidates(None, None, 10).await.unwrap().connected;
        let places = database.api.locations().await.unwrap().len();
        let addresses = database.api.relay_addresses(16).await.unwrap().len() - 1;
        (listed, found, places, addresses)
    };
    // Silent for a day: nobody has said anything, so nothing has changed.
    database.postgres.admin("update relay_beat set beat_at = beat_at - interval '1 day'").unwrap();
    let seen = look(&database, None).await.relays;
    assert_eq!(seen.len(), 2);
    let of = |relays: &[RelaySeen], wanted| relays.iter().find(|seen| seen.relay == wanted).unwrap().clone();
    for state in ["late", "unknown", "suspect"] {
        database.worker.write_verdicts(vec![verdict(&of(&seen, relay), state)]).await.unwrap();
        assert_eq!(connected().await, (true, 1, 1, 1), "{state}");
    }
    assert_eq!(database.worker.write_verdicts(vec![verdict(&of(&seen, relay), "dead")]).await.unwrap(), 1);
    assert_eq!(connected().await, (false, 0, 0, 0));
    let seen = of(&look(&database, None).await.relays, relay);
    assert_eq!(seen.verdict.as_ref().unwrap().state, "dead");
    assert!(seen.removed_ms_ago.unwrap() < 60_000);
    // Its next beat ends it, before the worker knows of it; and the verdict over the beat before is not written any more.
    assert_eq!(database.relay.beat(beat(relay, 1)).await.unwrap(), Beaten::Known);
    assert_eq!(connected().await, (true, 1, 1, 1));
    assert_eq!(database.worker.write_verdicts(vec![verdict(&seen, "dead")]).await.unwrap(), 0);
    let back = of(&look(&database, None).await.relays, relay);
    database.worker.write_verdicts(vec![verdict(&back, "alive")]).await.unwrap();
    assert!(
        of(&look(&database, None).await.relays, relay).removed_ms_ago.is_some(),
        "the rate still counts it"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn relays_that_beat_come_before_those_that_are_late() {
    let database = Database::start().await;
    let (late, busy) = (RelayId::random(), RelayId::random());
    database.relay.beat(Beat { address: "late:443".into(), connections: 0, ..beat(late, 1) }).await.unwrap();
    database.relay.beat(Beat { address: "busy:443".into(), connections: 9, ..beat(busy, 1) }).await.unwrap();
    let addresses = async || database.api.relay_addresses(16).await.unwrap();
    assert_eq!(addresses().await, ["late:443", "busy:443"]);
    let sql = format!("update relay_beat set beat_at = now() - interval '1 min' where relay = '{}'", late.0);
    database.postgres.admin(&sql).unwrap();
    assert_eq!(addresses().await, ["busy:443", "late:443"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_is_listed_and_words_of_peers_are_read_for_as_long_as_they_are_young() {
    let database = Database::start().await;
    let (one, two) = (RelayId::random(), RelayId::random());
    for relay in [one, two] {
        database.relay.beat(beat(relay, 1)).await.unwrap();
    }
    assert!(database.relay.relays_in_doubt(two).await.unwrap().is_empty());
    let seen = look(&database, Some(("many_late", 5_000))).await;
    let late = seen.relays.iter().find(|seen| seen.relay == one).unwrap();
    database.worker.write_verdicts(vec![verdict(late, "late")]).await.unwrap();
    assert_eq!(database.relay.relays_in_doubt(two).await.unwrap(), [(one, "relay:443".to_owned())]);
    assert!(database.relay.relays_in_doubt(one).await.unwrap().is_empty());
    database.relay.tell_of_relays(two, vec![(one, true)]).await.unwrap();
    database.relay.tell_of_relays(two, vec![(one, false)]).await.unwrap();
    let words = look(&database, Some(("many_late", 5_000))).await.words;
    assert_eq!(words, [RelayWord { by: two, about: one, reaches: false }]);
    database.postgres.admin("update relay_word set told_at = told_at - interval '1 min'").unwrap();
    assert!(look(&database, Some(("many_late", 5_000))).await.words.is_empty());
    let (relays, workers) = database.api.relays_listed().await.unwrap();
    assert_eq!((relays.len(), workers.len()), (2, 1));
    assert_eq!(workers[0].hold, Some(("many_late".to_owned(), 5_000)));
    assert_eq!((workers[0].relays, workers[0].late), (2, 1));
    let of_one = relays.iter().find(|listed| listed.seen.relay == one).unwrap();
    assert!(of_one.since_ms.is_some() && of_one.seen.verdict.as_ref().unwrap().state == "late");
}
