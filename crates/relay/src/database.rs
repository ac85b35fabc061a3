//! The records in the network's database.

use crate::contracts::Usage;
use crate::elsewhere::MAX_PEERS;
use crate::hub::Presence;
use crate::records::{Beat, Beaten, RecordError, Records};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;
use store::{Connected, Disconnected, Store};
use tokio::task::JoinSet;
use trust::RelayId;

/// Another relay has so long to answer when this one looks for it.
const REACH_LIMIT: Duration = Duration::from_secs(2);

/// Records of one relay.
#[derive(Clone, Debug)]
pub struct Database {
    store: Store,
    relay: RelayId,
}

impl Database {
    /// Records of this relay go to this store.
    #[must_use]
    pub const fn new(store: Store, relay: RelayId) -> Self {
        Self { store, relay }
    }
}

impl Records for Database {
    async fn beat(&self, beat: Beat) -> Result<Beaten, RecordError> {
        let Beat { epoch, started_at_ms, address, connections, draining, ring, revocations } = beat;
        let relay = self.relay;
        let beat =
            store::Beat { relay, epoch, address, connections, draining, started_at_ms, ring, revocations };
        let beaten = match self.store.beat(beat).await? {
            store::Beaten::Known => Beaten::Known,
            store::Beaten::New => Beaten::New,
            store::Beaten::Superseded => {
                return Err("a later start of this relay beats already; is it started twice?".into());
            }
            store::Beaten::NoNetwork => {
                return Err(
                    "the database has no record of this network yet; an api writes it when it starts".into(),
                );
            }
        };
        // What an earlier start has left is closed a piece at a time, by a beat that follows: this one has been taken.
        if let Err(error) = self.store.close_earlier_connections(relay, epoch).await {
            tracing::debug!(%error, "connections of earlier starts are not closed yet");
        }
        Ok(beaten)
    }

    async fn tell_of_others(&self) -> Result<(), RecordError> {
        let network = self.store.network();
        let asked = self.store.relays_in_doubt(self.relay).await?;
        let mut looking: JoinSet<_> = asked
            .into_iter()
            .map(|(relay, address)| async move {
                (relay, client::reach(&address, network, REACH_LIMIT).await == client::Reach::Answers)
            })
            .collect();
        let mut words = Vec::new();
        while let Some(looked) = looking.join_next().await {
            words.extend(looked);
        }
        if !words.is_empty() {
            self.store.tell_of_relays(self.relay, words).await?;
        }
        Ok(())
    }

    async fn presence(&self, epoch: u64, presence: &[Presence]) -> Result<(), RecordError> {
        let (came, went) = summarize(presence);
        Ok(self.store.record_connections(self.relay, epoch, came, went).await?)
    }

    async fn relays(&self) -> Result<Vec<String>, RecordError> {
        let most = u32::try_from(MAX_PEERS).unwrap_or(u32::MAX);
        Ok(self.store.relay_addresses(most).await?)
    }

    async fn usage(&self, epoch: u64, usage: &[Usage]) -> Result<(), RecordError> {
        let reports = usage.iter().map(|&Usage { contract, sequence, bytes }| store::Usage {
            contract,
            sequence,
            bytes,
        });
        Ok(self.store.record_usage(self.relay, epoch, reports.collect()).await?)
    }
}

/// Of each start of a client, what holds in the end.
fn summarize(presence: &[Presence]) -> (Vec<Connected>, Vec<Disconnected>) {
    let mut last: HashMap<_, (Option<Connected>, Option<Disconnected>)> = HashMap::new();
    for event in presence {
        match event {
            Presence::Came { client, epoch, software, at_ms } => {
                let software = software.to_string();
                let came = Connected { client: *client, epoch: *epoch, software, at_ms: *at_ms };
                last.insert((*client, *epoch), (Some(came), None));
            }
            Presence::Left { client, epoch, cause, at_ms } => {
                let left = Disconnected { client: *client, epoch: *epoch, cause: *cause, at_ms: *at_ms };
                match last.entry((*client, *epoch)) {
                    Entry::Occupied(mut entry) => entry.get_mut().1 = Some(left),
                    Entry::Vacant(entry) => drop(entry.insert((None, Some(left)))),
                }
            }
        }
    }
    let (came, went): (Vec<_>, Vec<_>) = last.into_values().unzip();
    (came.into_iter().flatten().collect(), went.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use trust::ClientId;
    use uuid::Uuid;

    fn came(client: u128, at_ms: u64) -> Presence {
        Presence::Came { client: ClientId(Uuid::from_u128(client)), epoch: 1, software: "x".into(), at_ms }
    }

    fn left(client: u128, at_ms: u64) -> Presence {
        Presence::Left { client: ClientId(Uuid::from_u128(client)), epoch: 1, cause: 5, at_ms }
    }

    #[test]
    fn of_many_comings_and_goings_the_last_holds() {
        let (came, went) =
            summarize(&[came(1, 1), left(1, 2), came(1, 3), came(2, 4), left(2, 5), left(3, 6)]);
        let mut came: Vec<_> = came.iter().map(|row| (row.client.0.as_u128(), row.at_ms)).collect();
        let mut went: Vec<_> = went.iter().map(|row| (row.client.0.as_u128(), row.at_ms)).collect();
        came.sort_unstable();
        went.sort_unstable();
        assert_eq!(came, [(1, 3), (2, 4)]);
        assert_eq!(went, [(2, 5), (3, 6)]);
    }
}
