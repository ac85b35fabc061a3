//! The map of slots, as `CLUSTER SLOTS` tells it.

use redis::Value;

use crate::redis::way::joined;
use crate::slot::SLOTS;

/// Addresses that one map may name.
const MAX_ADDRESSES: usize = 1_024;

/// No owner.
const NOBODY: u16 = u16::MAX;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SlotMap {
    addresses: Vec<String>,
    /// For each slot the index of its owner; empty if nothing is known.
    owners: Vec<u16>,
}

impl SlotMap {
    /// From the answer of the server at `from`. None if it is no such answer, or names nobody.
    pub(super) fn read(value: &Value, from: &str) -> Option<Self> {
        let Value::Array(ranges) = value else { return None };
        let mut map = Self::default();
        for range in ranges {
            let Value::Array(parts) = range else { return None };
            let [Value::Int(first), Value::Int(last), Value::Array(primary), ..] = parts.as_slice() else {
                return None;
            };
            let address = address(primary, from)?;
            let slots = usize::try_from(*first).ok()?..=usize::try_from(*last).ok()?;
            let owner = map.index(&address)?;
            map.owners().get_mut(slots)?.fill(owner);
        }
        (!map.addresses.is_empty()).then_some(map)
    }

    pub(super) fn owner(&self, slot: u16) -> Option<&str> {
        let owner = *self.owners.get(usize::from(slot))?;
        self.addresses.get(usize::from(owner)).map(String::as_str)
    }

    pub(super) fn contains(&self, address: &str) -> bool {
        self.addresses.iter().any(|known| known == address)
    }

    /// Changes one slot. Whether that is news.
    pub(super) fn moved(&mut self, slot: u16, to: &str) -> bool {
        if self.owner(slot) == Some(to) {
            return false;
        }
        let Some(owner) = self.index(to) else { return false };
        if let Some(place) = self.owners().get_mut(usize::from(slot)) {
            *place = owner;
        }
        true
    }

    fn index(&mut self, address: &str) -> Option<u16> {
        let known = self.addresses.iter().position(|known| known == address);
        let index = match known {
            Some(index) => index,
            None if self.addresses.len() < MAX_ADDRESSES => {
                self.addresses.push(address.to_owned());
                self.addresses.len() - 1
            }
            None => return None,
        };
        u16::try_from(index).ok()
    }

    fn owners(&mut self) -> &mut [u16] {
        if self.owners.is_empty() {
            self.owners = vec![NOBODY; usize::from(SLOTS)];
        }
        &mut self.owners
    }
}

/// `[host, port, …]`; a host that is not told is that of whoever answered.
fn address(parts: &[Value], from: &str) -> Option<String> {
    let [host, Value::Int(port), ..] = parts else { return None };
    let port = u16::try_from(*port).ok()?;
    let host = match host {
        Value::BulkString(host) => std::str::from_utf8(host).ok()?,
        Value::SimpleString(host) => host,
        Value::Nil => "",
        _ => return None,
    };
    let host = if host.is_empty() || host == "?" { from.rsplit_once(':')?.0 } else { host };
    Some(joined(host, port))
}

#[cfg(test)]
mod tests;
