use super::connection::to_ms;
use super::{MAX_ADDRESS_BYTES, MAX_SEAL_BYTES};
use crate::code::Code;
use crate::fields::{Fields, Malformed, put};
use crate::frame::{Kind, write_frame};
use std::time::Duration;
use uuid::Uuid;

/// Open a stream (§4). To a relay it names the provider, to a provider the opener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open<'a> {
    /// To which provider, and to which start of it (0 for any): from an opener, or a relay to another.
    pub provider: Option<(Uuid, u64)>,
    /// For whom: from a relay.
    pub opener: Option<Uuid>,
    /// What pays for it.
    pub contract: Uuid,
    /// The answer is worth nothing after this time.
    pub deadline_ms: u32,
    /// Relays passed so far.
    pub hops: u8,
    /// Credit for the answers.
    pub window_bytes: u32,
    /// The first message of the seal.
    pub seal: &'a [u8],
    /// The opener cannot go to another relay: the open is to be passed on, once.
    pub forward: bool,
}

impl<'a> Open<'a> {
    /// Reads the payload of an OPEN.
    ///
    /// # Errors
    /// The peer breaks the protocol.
    pub fn decode(payload: &'a [u8]) -> Result<Self, Malformed> {
        let (mut provider, mut epoch, mut contract, mut opener) = (None, 0, None, None);
        let (mut deadline_ms, mut hops, mut window_bytes, mut seal) = (None, 0, None, None);
        let mut forward = false;
        for field in Fields::new(payload) {
            let field = field?;
            match field.tag {
                1 => provider = Some(field.uuid()?),
                2 => epoch = field.u64()?,
                3 => contract = Some(field.uuid()?),
                4 => opener = Some(field.uuid()?),
                5 => deadline_ms = Some(field.u32()?),
                6 => hops = field.u8()?,
                7 => window_bytes = Some(field.u32()?),
                8 => seal = Some(field.bytes(MAX_SEAL_BYTES)?),
                9 => forward = field.u8()? != 0,
                _ => {}
            }
        }
        if provider.is_none() && opener.is_none() {
            return Err(Malformed::Missing(1));
        }
        Ok(Self {
            provider: provider.map(|provider| (provider, epoch)),
            opener,
            contract: contract.ok_or(Malformed::Missing(3))?,
            deadline_ms: deadline_ms.ok_or(Malformed::Missing(5))?,
            hops,
            window_bytes: window_bytes.ok_or(Malformed::Missing(7))?,
            seal: seal.ok_or(Malformed::Missing(8))?,
            forward,
        })
    }

    /// Adds the frame.
    pub fn write(&self, stream: u32, out: &mut Vec<u8>) {
        write_frame(out, Kind::Open, stream, |out| {
            if let Some((provider, epoch)) = self.provider {
                put(out, 1, provider.as_bytes());
                put(out, 2, &epoch.to_be_bytes());
            }
            put(out, 3, self.contract.as_bytes());
            if let Some(opener) = self.opener {
                put(out, 4, opener.as_bytes());
            }
            put(out, 5, &self.deadline_ms.to_be_bytes());
            put(out, 6, &[self.hops]);
            put(out, 7, &self.window_bytes.to_be_bytes());
            put(out, 8, self.seal);
            if self.forward {
                put(out, 9, &[1]);
            }
        });
    }
}

/// The provider has read an open; how the dial ended is in the seal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened<'a> {
    /// Credit for what the opener sends.
    pub window_bytes: u32,
    /// The second message of the seal.
    pub seal: &'a [u8],
}

impl<'a> Opened<'a> {
    /// Reads the payload of an OPENED.
    ///
    /// # Errors
    /// The peer breaks the protocol.
    pub fn decode(payload: &'a [u8]) -> Result<Self, Malformed> {
        let (mut window_bytes, mut seal) = (None, None);
        for field in Fields::new(payload) {
            let field = field?;
            match field.tag {
                1 => window_bytes = Some(field.u32()?),
                2 => seal = Some(field.bytes(MAX_SEAL_BYTES)?),
                _ => {}
            }
        }
        Ok(Self {
            window_bytes: window_bytes.ok_or(Malformed::Missing(1))?,
            seal: seal.ok_or(Malformed::Missing(2))?,
        })
    }

    /// Adds the frame.
    pub fn write(&self, stream: u32, out: &mut Vec<u8>) {
        write_frame(out, Kind::Opened, stream, |out| {
            put(out, 1, &self.window_bytes.to_be_bytes());
            put(out, 2, self.seal);
        });
    }
}

/// A stream is over in both directions (§5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reset {
    /// Why.
    pub code: Code,
    /// When to try again, if the sender knows.
    pub retry_after: Option<Duration>,
}

impl Reset {
    /// With no time named.
    #[must_use]
    pub const fn because(code: Code) -> Self {
        Self { code, retry_after: None }
    }

    /// Reads the payload of a RESET.
    ///
    /// # Errors
    /// The peer breaks the protocol.
    pub fn decode(payload: &[u8]) -> Result<Self, Malformed> {
        let (mut code, mut retry_after) = (None, None);
        for field in Fields::new(payload) {
            let field = field?;
            match field.tag {
                1 => code = Some(Code::from_number(field.u16()?)),
                2 => retry_after = Some(Duration::from_millis(u64::from(field.u32()?))),
                _ => {}
            }
        }
        Ok(Self { code: code.ok_or(Malformed::Missing(1))?, retry_after })
    }

    /// Adds the frame.
    pub fn write(&self, stream: u32, out: &mut Vec<u8>) {
        write_frame(out, Kind::Reset, stream, |out| {
            put(out, 1, &self.code.number().to_be_bytes());
            if let Some(retry_after) = self.retry_after {
                put(out, 2, &to_ms(retry_after).to_be_bytes());
            }
        });
    }
}

/// The provider is at another relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved<'a> {
    /// Where, `host:port`.
    pub address: &'a str,
    /// The number of the provider's start there.
    pub epoch: u64,
}

impl<'a> Moved<'a> {
    /// Reads the payload of a MOVED.
    ///
    /// # Errors
    /// The relay breaks the protocol.
    pub fn decode(payload: &'a [u8]) -> Result<Self, Malformed> {
        let (mut address, mut epoch) = (None, None);
        for field in Fields::new(payload) {
            let field = field?;
            match field.tag {
                1 => address = Some(field.text(MAX_ADDRESS_BYTES)?),
                2 => epoch = Some(field.u64()?),
                _ => {}
            }
        }
        Ok(Self {
            address: address.ok_or(Malformed::Missing(1))?,
            epoch: epoch.ok_or(Malformed::Missing(2))?,
        })
    }

    /// Adds the frame.
    pub fn write(&self, stream: u32, out: &mut Vec<u8>) {
        write_frame(out, Kind::Moved, stream, |out| {
            put(out, 1, self.address.as_bytes());
            put(out, 2, &self.epoch.to_be_bytes());
        });
    }
}

/// Reads the payload of a CREDIT: bytes that may be sent besides.
///
/// # Errors
/// The peer breaks the protocol.
pub fn decode_credit(payload: &[u8]) -> Result<u32, Malformed> {
    payload.try_into().map(u32::from_be_bytes).map_err(|_| Malformed::BadLength)
}

/// Adds a CREDIT.
pub fn write_credit(stream: u32, bytes: u32, out: &mut Vec<u8>) {
    write_frame(out, Kind::Credit, stream, |out| out.extend_from_slice(&bytes.to_be_bytes()));
}
