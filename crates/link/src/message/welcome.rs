use super::{MAX_ADDRESS_BYTES, MAX_ADDRESSES};
use crate::fields::{Fields, Malformed, put};
use crate::frame::{Kind, write_frame};
use uuid::Uuid;

const ADDRESS: u8 = 13;

/// The relay takes a client in, and says what holds from now on (§3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// The version that is spoken.
    pub version: u8,
    /// Who the relay is.
    pub relay: Uuid,
    /// The epoch of the hello.
    pub epoch: u64,
    /// The relay's clock, milliseconds since 1970.
    pub time_ms: u64,
    /// The silence after which a peer is asked.
    pub ping_interval_ms: u32,
    /// Unanswered pings after which it is given up.
    pub ping_misses: u8,
    /// The greatest wait before the first attempt to come back.
    pub backoff_base_ms: u32,
    /// The greatest wait before any attempt.
    pub backoff_cap_ms: u32,
    /// A connection that held for so long ends the count of attempts.
    pub stable_after_ms: u32,
    /// The most streams at once.
    pub streams: u32,
    /// The credit that each end of a stream starts with.
    pub window_bytes: u32,
    /// The most that it may grow to.
    pub greatest_window_bytes: u32,
    /// Other relays, `host:port`.
    pub addresses: Vec<String>,
}

impl Welcome {
    /// Reads the payload of a WELCOME.
    ///
    /// # Errors
    /// The relay breaks the protocol.
    pub fn decode(payload: &[u8]) -> Result<Self, Malformed> {
        let (mut version, mut relay, mut epoch, mut addresses) = (None, None, None, Vec::new());
        let mut time_ms = None;
        let mut numbers = [None; ADDRESS as usize];
        let mut ping_misses = None;
        for field in Fields::with_repeated(payload, ADDRESS) {
            let field = field?;
            match field.tag {
                1 => version = Some(field.u8()?),
                2 => relay = Some(field.uuid()?),
                3 => epoch = Some(field.u64()?),
                4 => time_ms = Some(field.u64()?),
                6 => ping_misses = Some(field.u8()?),
                5 | 7..=12 => numbers[usize::from(field.tag)] = Some(field.u32()?),
                ADDRESS if addresses.len() == MAX_ADDRESSES => return Err(field.bad()),
                ADDRESS => addresses.push(field.text(MAX_ADDRESS_BYTES)?.to_owned()),
                _ => {}
            }
        }
        let number = |tag: u8| numbers[usize::from(tag)].ok_or(Malformed::Missing(tag));
        Ok(Self {
            version: version.ok_or(Malformed::Missing(1))?,
            relay: relay.ok_or(Malformed::Missing(2))?,
            epoch: epoch.ok_or(Malformed::Missing(3))?,
            time_ms: time_ms.ok_or(Malformed::Missing(4))?,
            ping_interval_ms: number(5)?,
            ping_misses: ping_misses.ok_or(Malformed::Missing(6))?,
            backoff_base_ms: number(7)?,
            backoff_cap_ms: number(8)?,
            stable_after_ms: number(9)?,
            streams: number(10)?,
            window_bytes: number(11)?,
            greatest_window_bytes: number(12)?,
            addresses,
        })
    }

    /// Adds the frame. Addresses beyond the greatest number are left out.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_frame(out, Kind::Welcome, 0, |out| {
            put(out, 1, &[self.version]);
            put(out, 2, self.relay.as_bytes());
            put(out, 3, &self.epoch.to_be_bytes());
            put(out, 4, &self.time_ms.to_be_bytes());
            put(out, 5, &self.ping_interval_ms.to_be_bytes());
            put(out, 6, &[self.ping_misses]);
            put(out, 7, &self.backoff_base_ms.to_be_bytes());
            put(out, 8, &self.backoff_cap_ms.to_be_bytes());
            put(out, 9, &self.stable_after_ms.to_be_bytes());
            put(out, 10, &self.streams.to_be_bytes());
            put(out, 11, &self.window_bytes.to_be_bytes());
            put(out, 12, &self.greatest_window_bytes.to_be_bytes());
            for address in self.addresses.iter().take(MAX_ADDRESSES) {
                put(out, ADDRESS, address.as_bytes());
            }
        });
    }
}
