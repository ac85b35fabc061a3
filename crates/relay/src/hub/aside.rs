//! Connections that their client has left, for a newer one here or at another relay: they end with their streams.

use std::collections::HashMap;
use std::rc::{Rc, Weak};
use trust::ClientId;

/// Connections of one client that are set aside at once: one that dials here and there in turn would take every place.
const MOST_OF_CLIENT: usize = 4;

/// By client, the oldest first.
#[derive(Debug)]
pub(super) struct Aside<T>(HashMap<ClientId, Vec<Weak<T>>>);

impl<T> Default for Aside<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T> Aside<T> {
    /// Sets one aside. Those that are too many then, and are to be ended.
    #[must_use]
    pub(super) fn push(&mut self, client: ClientId, connection: &Rc<T>) -> Vec<Rc<T>> {
        let of_client = self.0.entry(client).or_default();
        of_client.push(Rc::downgrade(connection));
        let beyond = of_client.len().saturating_sub(MOST_OF_CLIENT);
        of_client.iter().take(beyond).filter_map(Weak::upgrade).collect()
    }

    /// It has ended, or is not aside any more.
    pub(super) fn remove(&mut self, client: ClientId, connection: &Rc<T>) {
        if let Some(of_client) = self.0.get_mut(&client) {
            of_client.retain(|one| !std::ptr::eq(one.as_ptr(), Rc::as_ptr(connection)));
            if of_client.is_empty() {
                self.0.remove(&client);
            }
        }
    }

    /// Those of a client.
    pub(super) fn of(&self, client: ClientId) -> impl Iterator<Item = Rc<T>> {
        self.0.get(&client).into_iter().flatten().filter_map(Weak::upgrade)
    }

    /// Whose there are.
    pub(super) fn clients(&self) -> Vec<ClientId> {
        self.0.keys().copied().collect()
    }

    /// All of them.
    pub(super) fn all(&self) -> impl Iterator<Item = Rc<T>> {
        self.0.values().flatten().filter_map(Weak::upgrade)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_one_client_the_oldest_are_to_be_ended_and_others_are_left_alone() {
        let (client, other) = (ClientId::random(), ClientId::random());
        let mut aside = Aside::default();
        let connections: Vec<_> = (0..MOST_OF_CLIENT + 2).map(Rc::new).collect();
        let ended: Vec<Vec<_>> = connections.iter().map(|one| aside.push(client, one)).collect();
        assert!(ended[..MOST_OF_CLIENT].iter().all(Vec::is_empty));
        assert_eq!(ended[MOST_OF_CLIENT], [Rc::clone(&connections[0])]);
        assert_eq!(ended[MOST_OF_CLIENT + 1], connections[..2], "the first has not left yet");
        assert!(aside.push(other, &connections[0]).is_empty());
        for one in &connections {
            aside.remove(client, one);
        }
        assert_eq!((aside.of(client).count(), aside.clients(), aside.all().count()), (0, vec![other], 1));
    }
}
