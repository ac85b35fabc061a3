use super::{MAX_ADDRESS_BYTES, MAX_ADDRESSES, MAX_CAUSE_BYTES, MAX_TOKEN_BYTES};
use crate::code::Code;
use crate::fields::{Fields, Malformed, put, shorten};
use crate::frame::{Kind, write_frame};
use std::borrow::Cow;
use std::time::Duration;
use uuid::Uuid;

/// A connection (stream 0) or an open is refused (§7). After the first, the sender closes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refuse<'a> {
    /// Why.
    pub code: Code,
    /// Why, for people. It tells nothing that the other end may not know.
    pub cause: Cow<'a, str>,
    /// When to try again, if the sender knows.
    pub retry_after: Option<Duration>,
}

impl<'a> Refuse<'a> {
    /// Reads the payload of a REFUSE.
    ///
    /// # Errors
    /// The peer breaks the protocol.
    pub fn decode(payload: &'a [u8]) -> Result<Self, Malformed> {
        let (mut code, mut cause, mut retry_after) = (None, "", None);
        for field in Fields::new(payload) {
            let field = field?;
            match field.tag {
                1 => code = Some(Code::from_number(field.u16()?)),
                2 => cause = field.text(MAX_CAUSE_BYTES)?,
                3 => retry_after = Some(Duration::from_millis(u64::from(field.u32()?))),
                _ => {}
            }
        }
        Ok(Self { code: code.ok_or(Malformed::Missing(1))?, cause: cause.into(), retry_after })
    }

    /// Adds the frame; a longer cause is cut.
    pub fn write(&self, stream: u32, out: &mut Vec<u8>) {
        write_frame(out, Kind::Refuse, stream, |out| {
            put(out, 1, &self.code.number().to_be_bytes());
            put(out, 2, shorten(&self.cause, MAX_CAUSE_BYTES).as_bytes());
            if let Some(retry_after) = self.retry_after {
                put(out, 3, &to_ms(retry_after).to_be_bytes());
            }
        });
    }
}

/// Go to another relay: dial it at a random moment within `spread`, and let old streams end until `deadline`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drain {
    /// Until then the old streams may go on.
    pub deadline_ms: u32,
    /// Within this time the client dials anew.
    pub spread_ms: u32,
    /// Where to, `host:port`; if there is none, where it came from.
    pub addresses: Vec<String>,
}

impl Drain {
    /// Reads the payload of a DRAIN.
    ///
    /// # Errors
    /// The relay breaks the protocol.
    pub fn decode(payload: &[u8]) -> Result<Self, Malformed> {
        let (mut deadline_ms, mut spread_ms, mut addresses) = (None, None, Vec::new());
        for field in Fields::with_repeated(payload, 3) {
            let field = field?;
            match field.tag {
                1 => deadline_ms = Some(field.u32()?),
                2 => spread_ms = Some(field.u32()?),
                3 if addresses.len() == MAX_ADDRESSES => return Err(field.bad()),
                3 => addresses.push(field.text(MAX_ADDRESS_BYTES)?.to_owned()),
                _ => {}
            }
        }
        Ok(Self {
            deadline_ms: deadline_ms.ok_or(Malformed::Missing(1))?,
            spread_ms: spread_ms.ok_or(Malformed::Missing(2))?,
            addresses,
        })
    }

    /// Adds the frame. Addresses beyond the greatest number are left out.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_frame(out, Kind::Drain, 0, |out| {
            put(out, 1, &self.deadline_ms.to_be_bytes());
            put(out, 2, &self.spread_ms.to_be_bytes());
            for address in self.addresses.iter().take(MAX_ADDRESSES) {
                put(out, 3, address.as_bytes());
            }
        });
    }
}

/// The contract that later opens name (§4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contract<'a> {
    /// As the api has signed it.
    pub text: &'a str,
    /// The contract that it goes on for, shown on this connection before.
    pub follows: Option<Uuid>,
}

impl<'a> Contract<'a> {
    /// Reads the payload of a CONTRACT.
    ///
    /// # Errors
    /// The opener breaks the protocol.
    pub fn decode(payload: &'a [u8]) -> Result<Self, Malformed> {
        let (mut text, mut follows) = (None, None);
        for field in Fields::new(payload) {
            let field = field?;
            match field.tag {
                1 => text = Some(field.text(MAX_TOKEN_BYTES)?),
                2 => follows = Some(field.uuid()?),
                _ => {}
            }
        }
        Ok(Self { text: text.ok_or(Malformed::Missing(1))?, follows })
    }

    /// Adds the frame.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_frame(out, Kind::Contract, 0, |out| {
            put(out, 1, self.text.as_bytes());
            if let Some(follows) = self.follows {
                put(out, 2, follows.as_bytes());
            }
        });
    }
}

pub(super) fn to_ms(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}
