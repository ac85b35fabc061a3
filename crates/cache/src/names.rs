//! The names that stand in the cache, all of them. Nothing else writes into it.
//!
//! `holdfast:NETWORK:CLASS:KIND:NAME`, NETWORK being the first letters of the network's name. Every key is spread over the
//! slots of a Cluster by its whole text, so that one busy owner does not fill one node; what has to stand together with its
//! owner says so ([`Key::beside`]) and gets the owner as its hash tag. A brace in a name is escaped: whoever chooses names
//! does not choose slots.

use std::fmt::{self, Write as _};

use trust::NetworkId;

/// Letters of the network's name that stand in a key.
const NETWORK_LETTERS: usize = 16;

/// The greatest length of a name as given, bytes; longer ones are cut, which can only make two names one.
const GREATEST_NAME_BYTES: usize = 200;

/// What one thing in the cache is called: a kind, fixed in the program, and a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key(Box<str>);

impl Key {
    /// `name` may come from anybody. Beyond 200 bytes it is cut.
    #[must_use]
    pub fn new(kind: &'static str, name: &str) -> Self {
        let mut text = format!("{kind}:");
        escape(name, &mut text);
        Self(text.into())
    }

    /// A name in the same slot as everything else of its owner.
    #[must_use]
    pub fn beside(kind: &'static str, owner: &str, name: &str) -> Self {
        let mut text = format!("{kind}:{{");
        escape(owner, &mut text);
        text.push_str("}:");
        escape(name, &mut text);
        Self(text.into())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Where hints of one kind go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Channel(&'static str);

impl Channel {
    /// `change_log` has a new row.
    pub const CHANGES: Self = Self::new("changes");
    /// There is a new generation of pools.
    pub const POOLS: Self = Self::new("pools");

    /// Another one.
    #[must_use]
    pub const fn new(kind: &'static str) -> Self {
        Self(kind)
    }
}

impl fmt::Display for Channel {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.0)
    }
}

/// What an entry is; the same name in two classes is two entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Value,
    Lease,
    Count,
}

/// Writes the names of one network.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    prefix: Box<str>,
}

impl Names {
    pub(crate) fn new(network: NetworkId) -> Self {
        let name = network.to_string();
        let letters = name.get(..NETWORK_LETTERS).unwrap_or(&name);
        Self { prefix: format!("holdfast:{letters}:").into() }
    }

    pub(crate) fn key(&self, class: Class, key: &Key) -> String {
        let class = match class {
            Class::Value => "value:",
            Class::Lease => "lease:",
            Class::Count => "count:",
        };
        [&self.prefix, class, key.as_str()].concat()
    }

    pub(crate) fn channel(&self, channel: Channel) -> String {
        [&self.prefix, "hint:", channel.0].concat()
    }
}

fn escape(name: &str, text: &mut String) {
    for letter in name[..name.floor_char_boundary(GREATEST_NAME_BYTES)].chars() {
        match letter {
            '{' | '}' | '%' | ':' => {
                // Writing to a string cannot fail.
                let _ = write!(text, "%{:02X}", u32::from(letter));
            }
            _ => text.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slot::slot_of;

    fn written(key: &Key) -> String {
        Names::new(NetworkId([7; 32])).key(Class::Value, key)
    }

    #[test]
    fn who_chooses_a_name_does_not_choose_its_slot() {
        let slots: std::collections::HashSet<u16> = (0..50)
            .map(|number| slot_of(written(&Key::new("x", &format!("{{a}}{number}"))).as_bytes()))
            .collect();
        assert!(slots.len() > 40, "{}", slots.len());
    }

    #[test]
    fn what_stands_beside_its_owner_shares_a_slot_and_two_names_are_never_one() {
        let one = written(&Key::beside("x", "owner", "a"));
        let two = written(&Key::beside("x", "owner", "b"));
        assert_eq!(slot_of(one.as_bytes()), slot_of(two.as_bytes()));
        assert_ne!(one, two);
        assert_ne!(written(&Key::new("x", "a:b")), written(&Key::new("x", "a%3Ab")));
        assert_ne!(Key::beside("x", "o}:", "a"), Key::beside("x", "o", "}:a"));
    }

    #[test]
    fn a_name_is_cut_at_its_bound_and_not_inside_a_letter() {
        let long = "é".repeat(GREATEST_NAME_BYTES);
        assert_eq!(Key::new("x", &long).as_str().len(), 2 + GREATEST_NAME_BYTES);
        let uneven = format!("a{long}");
        assert_eq!(Key::new("x", &uneven).as_str().len(), 2 + GREATEST_NAME_BYTES - 1);
    }
}
