//! A pool as bytes: what its hash is made of, and what its readers keep. All numbers are big-endian.
//!
//! `HFP1`; two bytes: how many relays; for each, two bytes of length and its `host:port`; four bytes: how many providers; for each,
//! in the order of their names, 102 bytes: name (16), start (8), connected at (8), its relay's place (2), country (2), flags (2; the
//! lowest bit: verified), keys (64). Nothing behind it.

use std::collections::BTreeMap;
use std::sync::Arc;

use thiserror::Error;
use uuid::Uuid;

use super::{IDENTITY_BYTES, MOST_LISTED, Member};
use crate::candidate::Country;

/// The bytes of one provider.
pub const MEMBER_BYTES: usize = 16 + 8 + 8 + 2 + 2 + 2 + IDENTITY_BYTES;

/// The most relays of a pool.
const MAX_RELAYS: usize = 4_096;

/// The longest `host:port`.
const MAX_ADDRESS_BYTES: usize = 300;

/// The longest pool.
pub const MAX_BLOB_BYTES: usize =
    FORM.len() + 2 + MAX_RELAYS * (2 + MAX_ADDRESS_BYTES) + 4 + MOST_LISTED * MEMBER_BYTES;

const FORM: &[u8; 4] = b"HFP1";
const VERIFIED: u16 = 1;

/// Bytes that are no pool. Their maker's fault; the same bytes fail again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BlobError {
    /// Another form than this version knows.
    #[error("a pool of a form that is not known")]
    Form,
    /// It ends too early, or goes on behind its end.
    #[error("a pool that is cut, or longer than it says")]
    Length,
    /// More relays or providers than a pool may have.
    #[error("a pool with more entries than it may have")]
    TooMany,
    /// A name twice or out of order, a relay that is not there, an address or country that is none.
    #[error("a pool with an entry that makes no sense")]
    Entry,
}

/// The bytes of these providers, which stand in the order of their names. The same providers give the same bytes. Whoever would
/// need more relays than a pool may have, or a relay's address that is too long, is left out.
#[must_use]
pub fn encode(members: &[&Member]) -> Vec<u8> {
    let mut places: BTreeMap<&str, u16> = BTreeMap::new();
    for member in members {
        if places.len() < MAX_RELAYS && (1..=MAX_ADDRESS_BYTES).contains(&member.relay.len()) {
            places.insert(&member.relay, 0);
        }
    }
    for (number, place) in (0_u16..).zip(places.values_mut()) {
        *place = number;
    }
    let mut bytes = Vec::with_capacity(64 + members.len() * MEMBER_BYTES);
    bytes.extend(FORM);
    bytes.extend(u16::try_from(places.len()).unwrap_or(u16::MAX).to_be_bytes());
    for address in places.keys() {
        bytes.extend(u16::try_from(address.len()).unwrap_or(u16::MAX).to_be_bytes());
        bytes.extend(address.as_bytes());
    }
    let listed: Vec<_> = members
        .iter()
        .filter_map(|member| places.get(&*member.relay).map(|place| (member, place)))
        .take(MOST_LISTED)
        .collect();
    bytes.extend(u32::try_from(listed.len()).unwrap_or(u32::MAX).to_be_bytes());
    for (member, place) in listed {
        bytes.extend(member.provider.as_bytes());
        bytes.extend(member.epoch.to_be_bytes());
        bytes.extend(member.connected_at_ms.to_be_bytes());
        bytes.extend(place.to_be_bytes());
        bytes.extend(member.country.as_str().as_bytes());
        bytes.extend(if member.verified { VERIFIED } else { 0 }.to_be_bytes());
        bytes.extend(member.identity);
    }
    bytes
}

/// Reads a pool.
///
/// # Errors
///
/// See [`BlobError`].
pub fn decode(bytes: &[u8]) -> Result<Vec<Member>, BlobError> {
    let mut rest = bytes;
    if take::<4>(&mut rest)? != *FORM {
        return Err(BlobError::Form);
    }
    let relays = usize::from(u16::from_be_bytes(take(&mut rest)?));
    if relays > MAX_RELAYS {
        return Err(BlobError::TooMany);
    }
    let relays = (0..relays).map(|_| address(&mut rest)).collect::<Result<Vec<_>, _>>()?;
    let count = u32::from_be_bytes(take(&mut rest)?) as usize;
    if count > MOST_LISTED {
        return Err(BlobError::TooMany);
    }
    // Before anything is set aside for them.
    if rest.len() != count * MEMBER_BYTES {
        return Err(BlobError::Length);
    }
    let mut members: Vec<Member> = Vec::with_capacity(count);
    for _ in 0..count {
        let member = member(&mut rest, &relays)?;
        if members.last().is_some_and(|last| last.provider >= member.provider) {
            return Err(BlobError::Entry);
        }
        members.push(member);
    }
    Ok(members)
}

fn member(rest: &mut &[u8], relays: &[Arc<str>]) -> Result<Member, BlobError> {
    let provider = Uuid::from_bytes(take(rest)?);
    let epoch = u64::from_be_bytes(take(rest)?);
    let connected_at_ms = u64::from_be_bytes(take(rest)?);
    let relay = relays.get(usize::from(u16::from_be_bytes(take(rest)?))).ok_or(BlobError::Entry)?;
    let country = take::<2>(rest)?;
    let country = std::str::from_utf8(&country).ok().and_then(Country::parse).ok_or(BlobError::Entry)?;
    let verified = u16::from_be_bytes(take(rest)?) & VERIFIED != 0;
    let identity = take(rest)?;
    Ok(Member { provider, epoch, connected_at_ms, relay: Arc::clone(relay), country, verified, identity })
}

fn address(rest: &mut &[u8]) -> Result<Arc<str>, BlobError> {
    let length = usize::from(u16::from_be_bytes(take(rest)?));
    if !(1..=MAX_ADDRESS_BYTES).contains(&length) {
        return Err(BlobError::Entry);
    }
    let (text, behind) = rest.split_at_checked(length).ok_or(BlobError::Length)?;
    *rest = behind;
    std::str::from_utf8(text).map(Arc::from).map_err(|_| BlobError::Entry)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], BlobError> {
    let (bytes, behind) = rest.split_first_chunk::<N>().ok_or(BlobError::Length)?;
    *rest = behind;
    Ok(*bytes)
}
