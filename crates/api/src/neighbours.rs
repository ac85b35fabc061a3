//! Connections at once from one address: nobody takes all the places.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use crate::guesses::Neighbourhood;

/// Connections at once from one address (for IPv6: from a network of 64 bits).
pub(crate) const MOST_OF_ONE: usize = 256;

/// Counts them. It holds an entry for each address with a connection, so it is as bounded as those are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Neighbours(Arc<Mutex<HashMap<Neighbourhood, usize>>>);

/// A connection that counts until it is dropped.
#[derive(Debug)]
pub(crate) struct Counted {
    of: Neighbourhood,
    all: Neighbours,
}

impl Neighbours {
    /// Counts one more, unless it is one too many.
    pub(crate) fn count(&self, address: IpAddr) -> Option<Counted> {
        let of = Neighbourhood::from(address);
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(of).or_insert(0);
        if *count >= MOST_OF_ONE {
            return None;
        }
        *count += 1;
        Some(Counted { of, all: self.clone() })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut counts = self.all.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.of) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.of);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_has_a_bounded_number_and_leaves_nothing_behind() {
        let neighbours = Neighbours::default();
        let (one, two): (IpAddr, IpAddr) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        let held: Vec<_> = (0..MOST_OF_ONE).map(|_| neighbours.count(one).unwrap()).collect();
        assert!(neighbours.count(one).is_none());
        assert!(neighbours.count(two).is_some());
        drop(held);
        assert!(neighbours.0.lock().unwrap().is_empty());
    }
}
