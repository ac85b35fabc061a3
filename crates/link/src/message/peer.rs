//! What relays say to each other (§8).

use super::MAX_ADDRESS_BYTES;
use crate::fields::{Fields, Malformed, put};
use crate::frame::{Kind, MAX_PAYLOAD_BYTES, write_frame};
use trust::{MAX_PEER_CHAIN, MAX_PEER_PROOF_BYTES};
use uuid::Uuid;

/// The longest certificate, in bytes.
const MAX_CERTIFICATE_BYTES: usize = 3_072;
/// Bytes of one provider in PRESENCE.
const PRESENT_BYTES: usize = 40;
/// The most providers in one PRESENCE.
pub const MOST_PRESENT: usize = (MAX_PAYLOAD_BYTES - 1) / PRESENT_BYTES;

/// A relay that dialled another says who it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer<'a> {
    /// The version of the protocol that it speaks.
    pub version: u8,
    /// Who it is.
    pub relay: Uuid,
    /// The number of its start.
    pub epoch: u64,
    /// How clients and relays reach it, `host:port`.
    pub address: &'a str,
    /// The certificates of its role in DER, its own first, at most [`MAX_PEER_CHAIN`].
    pub chain: Vec<&'a [u8]>,
    /// That it holds the key of the first, and for this very connection ([`trust::PeerClaims::sign`]).
    pub proof: &'a [u8],
}

impl<'a> Peer<'a> {
    /// Reads the payload of a PEER.
    ///
    /// # Errors
    /// The other relay breaks the protocol.
    pub fn decode(payload: &'a [u8]) -> Result<Self, Malformed> {
        let (mut version, mut relay, mut epoch, mut address, mut proof) = (None, None, None, None, None);
        let mut chain = Vec::new();
        for field in Fields::with_repeated(payload, 5) {
            let field = field?;
            match field.tag {
                1 => version = Some(field.u8()?),
                2 => relay = Some(field.uuid()?),
                3 => epoch = Some(field.u64()?),
                4 => address = Some(field.text(MAX_ADDRESS_BYTES)?),
                5 if chain.len() == MAX_PEER_CHAIN => return Err(field.bad()),
                5 => chain.push(field.bytes(MAX_CERTIFICATE_BYTES)?),
                6 => proof = Some(field.bytes(MAX_PEER_PROOF_BYTES)?),
                _ => {}
            }
        }
        Ok(Self {
            version: version.ok_or(Malformed::Missing(1))?,
            relay: relay.ok_or(Malformed::Missing(2))?,
            epoch: epoch.ok_or(Malformed::Missing(3))?,
            address: address.ok_or(Malformed::Missing(4))?,
            chain,
            proof: proof.ok_or(Malformed::Missing(6))?,
        })
    }

    /// Adds the frame. A chain that is longer, or has a longer certificate, is cut there: the other relay refuses it.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_frame(out, Kind::Peer, 0, |out| {
            put(out, 1, &[self.version]);
            put(out, 2, self.relay.as_bytes());
            put(out, 3, &self.epoch.to_be_bytes());
            put(out, 4, self.address.as_bytes());
            for certificate in self.chain.iter().take(MAX_PEER_CHAIN) {
                put(out, 5, &certificate[..certificate.len().min(MAX_CERTIFICATE_BYTES)]);
            }
            put(out, 6, self.proof);
        });
    }
}

/// The relay that was dialled takes the other in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peered<'a> {
    /// The version of the protocol that it speaks.
    pub version: u8,
    /// Who it is.
    pub relay: Uuid,
    /// The number of its start.
    pub epoch: u64,
    /// How clients and relays reach it, `host:port`.
    pub address: &'a str,
}

impl<'a> Peered<'a> {
    /// Reads the payload of a PEERED.
    ///
    /// # Errors
    /// The other relay breaks the protocol.
    pub fn decode(payload: &'a [u8]) -> Result<Self, Malformed> {
        let (mut version, mut relay, mut epoch, mut address) = (None, None, None, None);
        for field in Fields::new(payload) {
            let field = field?;
            match field.tag {
                1 => version = Some(field.u8()?),
                2 => relay = Some(field.uuid()?),
                3 => epoch = Some(field.u64()?),
                4 => address = Some(field.text(MAX_ADDRESS_BYTES)?),
                _ => {}
            }
        }
        Ok(Self {
            version: version.ok_or(Malformed::Missing(1))?,
            relay: relay.ok_or(Malformed::Missing(2))?,
            epoch: epoch.ok_or(Malformed::Missing(3))?,
            address: address.ok_or(Malformed::Missing(4))?,
        })
    }

    /// Adds the frame.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_frame(out, Kind::Peered, 0, |out| {
            put(out, 1, &[self.version]);
            put(out, 2, self.relay.as_bytes());
            put(out, 3, &self.epoch.to_be_bytes());
            put(out, 4, self.address.as_bytes());
        });
    }
}

/// What has become of the providers that a PRESENCE names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PresenceChange {
    /// They are connected to the relay that says so.
    Came,
    /// They are not any more.
    Left,
    /// All that were connected when the link came up have been named.
    Whole,
}

/// A provider's connection to the relay that speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Present {
    /// Who.
    pub client: Uuid,
    /// The number of its start.
    pub epoch: u64,
    /// Which of that start's connections, as its hello said.
    pub dial: u64,
    /// When it came, by the clock of the relay that speaks: ms since 1970.
    pub at_ms: u64,
}

/// Which providers a relay has: at most [`MOST_PRESENT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Presence<'a> {
    /// What has become of them.
    pub change: PresenceChange,
    records: &'a [u8],
}

impl<'a> Presence<'a> {
    /// Reads the payload of a PRESENCE.
    ///
    /// # Errors
    /// The other relay breaks the protocol.
    pub fn decode(payload: &'a [u8]) -> Result<Self, Malformed> {
        let (&change, records) = payload.split_first().ok_or(Malformed::BadLength)?;
        let change = match change {
            1 => PresenceChange::Came,
            2 => PresenceChange::Left,
            3 => PresenceChange::Whole,
            _ => return Err(Malformed::BadValue(change)),
        };
        if records.len() % PRESENT_BYTES != 0 || (change == PresenceChange::Whole) != records.is_empty() {
            return Err(Malformed::BadLength);
        }
        Ok(Self { change, records })
    }

    /// The providers.
    pub fn providers(&self) -> impl Iterator<Item = Present> + 'a {
        self.records.as_chunks::<PRESENT_BYTES>().0.iter().map(|record| {
            let part = |at: usize| {
                let mut bytes = [0; 8];
                bytes.copy_from_slice(&record[at..at + 8]);
                u64::from_be_bytes(bytes)
            };
            let client = Uuid::from_u64_pair(part(0), part(8));
            Present { client, epoch: part(16), dial: part(24), at_ms: part(32) }
        })
    }

    /// Adds the frame; at most [`MOST_PRESENT`] of them are written, and none with [`PresenceChange::Whole`].
    pub fn write(change: PresenceChange, providers: impl Iterator<Item = Present>, out: &mut Vec<u8>) {
        write_frame(out, Kind::Presence, 0, |out| {
            out.push(match change {
                PresenceChange::Came => 1,
                PresenceChange::Left => 2,
                PresenceChange::Whole => 3,
            });
            let most = if change == PresenceChange::Whole { 0 } else { MOST_PRESENT };
            for Present { client, epoch, dial, at_ms } in providers.take(most) {
                out.extend_from_slice(client.as_bytes());
                out.extend_from_slice(&epoch.to_be_bytes());
                out.extend_from_slice(&dial.to_be_bytes());
                out.extend_from_slice(&at_ms.to_be_bytes());
            }
        });
    }
}

/// How a relay stands; told when it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// It sends its clients away: nobody is to be sent to it.
    pub draining: bool,
}

impl Standing {
    /// Reads the payload of a STANDING.
    ///
    /// # Errors
    /// The other relay breaks the protocol.
    pub fn decode(payload: &[u8]) -> Result<Self, Malformed> {
        let mut draining = None;
        for field in Fields::new(payload) {
            let field = field?;
            if field.tag == 1 {
                draining = Some(field.u8()? != 0);
            }
        }
        Ok(Self { draining: draining.ok_or(Malformed::Missing(1))? })
    }

    /// Adds the frame.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_frame(out, Kind::Standing, 0, |out| put(out, 1, &[u8::from(self.draining)]));
    }
}
