//! Identities of connections and the slabs that hold their sessions.
//!
//! An identity is a slot and a generation: an event or an answer for a connection that is gone finds nothing, even if
//! its slot is in use again.

/// Identifies a client connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(Key);

/// Identifies a server connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerId(Key);

/// Identifies a pool: one (database, user).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PoolId(pub u32);

/// Either side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ConnectionId {
    /// A client.
    Client(ClientId),
    /// A server.
    Server(ServerId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    generation: u32,
    slot: u32,
}

/// The bit of a token's low half that tells servers from clients.
const SERVER_BIT: u64 = 1 << 31;

/// Slots per side: what is left below the bit that tells the sides apart, less two for tokens that drivers use for themselves.
pub const MAX_SLOTS: u32 = (1 << 31) - 2;

impl ConnectionId {
    /// As one number for a poller: generation in the high half, side and slot in the low half.
    #[must_use]
    pub const fn to_token(self) -> u64 {
        match self {
            Self::Client(ClientId(key)) => (key.generation as u64) << 32 | key.slot as u64,
            Self::Server(ServerId(key)) => (key.generation as u64) << 32 | SERVER_BIT | key.slot as u64,
        }
    }

    /// The inverse of [`Self::to_token`].
    #[must_use]
    pub const fn from_token(token: u64) -> Self {
        let generation = (token >> 32) as u32;
        let slot = (token & (SERVER_BIT - 1)) as u32;
        if token & SERVER_BIT == 0 {
            Self::Client(ClientId(Key { generation, slot }))
        } else {
            Self::Server(ServerId(Key { generation, slot }))
        }
    }
}

impl From<ClientId> for ConnectionId {
    fn from(id: ClientId) -> Self {
        Self::Client(id)
    }
}

impl From<ServerId> for ConnectionId {
    fn from(id: ServerId) -> Self {
        Self::Server(id)
    }
}

/// What the identities of a [`Slab`] have in common.
pub trait SlabId: Copy {
    /// From slot and generation.
    fn from_parts(slot: u32, generation: u32) -> Self;
    /// The slot: an index that a driver may use for its own table.
    fn slot(self) -> u32;
    /// The generation.
    fn generation(self) -> u32;
}

macro_rules! slab_id {
    ($name:ident) => {
        impl SlabId for $name {
            fn from_parts(slot: u32, generation: u32) -> Self {
                Self(Key { generation, slot })
            }

            fn slot(self) -> u32 {
                self.0.slot
            }

            fn generation(self) -> u32 {
                self.0.generation
            }
        }
    };
}

slab_id!(ClientId);
slab_id!(ServerId);

/// Sessions by identity. Removing bumps the slot's generation.
#[derive(Debug)]
pub struct Slab<I, T> {
    entries: Vec<Entry<T>>,
    free: Vec<u32>,
    identity: std::marker::PhantomData<I>,
}

#[derive(Debug)]
struct Entry<T> {
    generation: u32,
    value: Option<T>,
}

impl<I: SlabId, T> Default for Slab<I, T> {
    fn default() -> Self {
        Self { entries: Vec::new(), free: Vec::new(), identity: std::marker::PhantomData }
    }
}

impl<I: SlabId, T> Slab<I, T> {
    /// Sessions held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// True if there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a session; `None` if all slots are taken.
    pub fn insert(&mut self, value: T) -> Option<I> {
        if let Some(slot) = self.free.pop() {
            let entry = &mut self.entries[slot as usize];
            entry.value = Some(value);
            return Some(I::from_parts(slot, entry.generation));
        }
        let slot = u32::try_from(self.entries.len()).ok().filter(|&slot| slot < MAX_SLOTS)?;
        self.entries.push(Entry { generation: 0, value: Some(value) });
        Some(I::from_parts(slot, 0))
    }

    /// Takes a session out.
    pub fn remove(&mut self, id: I) -> Option<T> {
        let entry =
            self.entries.get_mut(id.slot() as usize).filter(|entry| entry.generation == id.generation())?;
        let value = entry.value.take()?;
        entry.generation = entry.generation.wrapping_add(1);
        self.free.push(id.slot());
        Some(value)
    }

    /// The session, if it is still there.
    #[inline]
    #[must_use]
    pub fn find(&self, id: I) -> Option<&T> {
        let entry = self.entries.get(id.slot() as usize)?;
        if entry.generation == id.generation() { entry.value.as_ref() } else { None }
    }

    /// The session, if it is still there.
    #[inline]
    pub fn find_mut(&mut self, id: I) -> Option<&mut T> {
        let entry = self.entries.get_mut(id.slot() as usize)?;
        if entry.generation == id.generation() { entry.value.as_mut() } else { None }
    }

    /// All sessions.
    pub fn iter(&self) -> impl Iterator<Item = (I, &T)> {
        (0u32..).zip(&self.entries).filter_map(|(slot, entry)| {
            entry.value.as_ref().map(|value| (I::from_parts(slot, entry.generation), value))
        })
    }

    /// All identities, as a list that stays valid while sessions are removed.
    #[must_use]
    pub fn ids(&self) -> Vec<I> {
        self.iter().map(|(id, _)| id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_of_a_connection_that_is_gone_finds_nothing() {
        let mut slab: Slab<ClientId, &str> = Slab::default();
        let first = slab.insert("first").unwrap();
        assert_eq!(slab.remove(first), Some("first"));
        let second = slab.insert("second").unwrap();
        assert_eq!(first.slot(), second.slot());
        assert_eq!(slab.find(first), None);
        assert_eq!(slab.remove(first), None);
        assert_eq!(slab.find(second), Some(&"second"));
        assert_eq!(slab.len(), 1);
    }

    #[test]
    fn tokens_keep_side_slot_and_generation() {
        for (slot, generation) in [(0, 0), (MAX_SLOTS - 1, u32::MAX), (77, 5)] {
            let client = ConnectionId::Client(ClientId::from_parts(slot, generation));
            let server = ConnectionId::Server(ServerId::from_parts(slot, generation));
            assert_eq!(ConnectionId::from_token(client.to_token()), client);
            assert_eq!(ConnectionId::from_token(server.to_token()), server);
            assert_ne!(client.to_token(), server.to_token());
        }
    }
}
