use super::{MAX_SOFTWARE_BYTES, MAX_TOKEN_BYTES};
use crate::VERSION;
use crate::fields::{Fields, Malformed, put, shorten};
use crate::frame::{Kind, write_frame};
use trust::Role;

/// A client says who it is (§3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello<'a> {
    /// The version of the protocol that it speaks.
    pub version: u8,
    /// What it wants to be.
    pub role: Role,
    /// Who says so.
    pub token: &'a str,
    /// Its Ed25519 and X25519 public keys.
    pub identity: &'a [u8; 64],
    /// The number of its start.
    pub epoch: u64,
    /// That it holds the keys, and for this very connection ([`trust::Proof::hello`]).
    pub proof: &'a [u8; 64],
    /// Name and version of its software.
    pub software: &'a str,
    /// Which of this start's connections it is: a later one has a greater number. 0 if the client does not say.
    pub dial: u64,
}

impl<'a> Hello<'a> {
    /// Reads the payload of a HELLO.
    ///
    /// # Errors
    /// The client breaks the protocol.
    pub fn decode(payload: &'a [u8]) -> Result<Self, Malformed> {
        let (mut version, mut role, mut token, mut identity) = (None, None, None, None);
        let (mut epoch, mut proof, mut software, mut dial) = (None, None, "", 0);
        for field in Fields::new(payload) {
            let field = field?;
            match field.tag {
                1 => version = Some(field.u8()?),
                2 => role = Some(Role::from_number(field.u8()?).ok_or_else(|| field.bad())?),
                3 => token = Some(field.text(MAX_TOKEN_BYTES)?),
                4 => identity = Some(field.value.try_into().map_err(|_| field.bad())?),
                5 => epoch = Some(field.u64()?),
                6 => proof = Some(field.value.try_into().map_err(|_| field.bad())?),
                7 => software = field.text(MAX_SOFTWARE_BYTES)?,
                8 => dial = field.u64()?,
                _ => {}
            }
        }
        Ok(Self {
            version: version.ok_or(Malformed::Missing(1))?,
            role: role.ok_or(Malformed::Missing(2))?,
            token: token.ok_or(Malformed::Missing(3))?,
            identity: identity.ok_or(Malformed::Missing(4))?,
            epoch: epoch.ok_or(Malformed::Missing(5))?,
            proof: proof.ok_or(Malformed::Missing(6))?,
            software,
            dial,
        })
    }

    /// Adds the frame, in this implementation's version of the protocol if `version` is [`VERSION`].
    pub fn write(&self, out: &mut Vec<u8>) {
        write_frame(out, Kind::Hello, 0, |out| {
            put(out, 1, &[self.version]);
            put(out, 2, &[self.role.number()]);
            put(out, 3, self.token.as_bytes());
            put(out, 4, self.identity);
            put(out, 5, &self.epoch.to_be_bytes());
            put(out, 6, self.proof);
            put(out, 7, shorten(self.software, MAX_SOFTWARE_BYTES).as_bytes());
            if self.dial != 0 {
                put(out, 8, &self.dial.to_be_bytes());
            }
        });
    }

    /// It is spoken here.
    #[must_use]
    pub const fn is_spoken(&self) -> bool {
        self.version == VERSION
    }
}
