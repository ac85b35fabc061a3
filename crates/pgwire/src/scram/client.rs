//! The client's side: logs in at a server and makes it prove itself.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::attributes::{Attributes, nonce_is_valid};
use super::{Key, MAX_ITERATIONS, ScramError, ScramKeys, decode_key, hmac_of, nonce, xor};
use crate::secret::{Password, same};

/// The header "no channel binding", and its base64, which the second message repeats.
const HEADER: &str = "n,,";
const HEADER_BASE64: &str = "biws";

/// What the client knows.
#[derive(Clone, Debug)]
pub enum ClientSecret {
    /// The password; keys are computed from it, which is costly.
    Password(Password),
    /// Keys learnt of a client's own login. They fit only where the same verifier is stored. Cheap.
    Keys(ScramKeys),
}

/// The first message is made; the server's challenge comes next.
pub struct AwaitServerFirst {
    secret: ClientSecret,
    /// `client-first-message-bare`, the beginning of what both sides sign.
    transcript: String,
    nonce_start: usize,
}

/// The proof is made; the server's own proof comes next.
pub struct AwaitServerFinal {
    signature: Key,
}

impl AwaitServerFirst {
    /// Begins an exchange and gives the first message; of `random` 18 bytes become the nonce.
    #[must_use]
    pub fn new(secret: ClientSecret, random: &[u8; 32]) -> (Self, Vec<u8>) {
        // The user's name is the one of the start-up message; PostgreSQL ignores any here.
        Self::with_nonce(secret, "", &String::from_iter(nonce(random).map(char::from)))
    }

    pub(super) fn with_nonce(secret: ClientSecret, user: &str, nonce: &str) -> (Self, Vec<u8>) {
        let transcript = format!("n={user},r={nonce}");
        let nonce_start = transcript.len() - nonce.len();
        let client_first = [HEADER, &transcript].concat().into_bytes();
        (Self { secret, transcript, nonce_start }, client_first)
    }

    /// Reads the challenge and makes the proof. **Costly** from a password: as many rounds of HMAC as the
    /// server asks for, at most [`MAX_ITERATIONS`].
    ///
    /// # Errors
    /// The challenge is malformed, answers another exchange, or asks for too much work. The server's fault.
    pub fn answer(self, server_first: &[u8]) -> Result<(AwaitServerFinal, Vec<u8>), ScramError> {
        let own_nonce = self.transcript.get(self.nonce_start..).unwrap_or_default();
        let mut attributes = Attributes::new(server_first)?;
        let nonce = attributes.expect('r', "nonce expected")?;
        if !nonce_is_valid(nonce) {
            return Err(ScramError::Malformed("non-printable characters in nonce"));
        }
        // The server must add something of its own.
        if !nonce.starts_with(own_nonce) || nonce.len() == own_nonce.len() {
            return Err(ScramError::Nonce);
        }
        let salt = attributes.expect('s', "salt expected")?;
        let salt = STANDARD.decode(salt).ok().filter(|salt| !salt.is_empty());
        let salt = salt.ok_or(ScramError::Malformed("malformed salt"))?;
        let iterations = iterations(attributes.expect('i', "iteration count expected")?)?;
        let keys = match &self.secret {
            ClientSecret::Password(password) => ScramKeys::derive(password.as_bytes(), &salt, iterations)?,
            ClientSecret::Keys(keys) => keys.clone(),
        };
        let mut client_final = format!("c={HEADER_BASE64},r={nonce}");
        // Attributes::new has made sure that it is text.
        let server_first = String::from_utf8_lossy(server_first);
        let signed = [&self.transcript, ",", &server_first, ",", &client_final].concat();
        let proof = xor(&keys.client_key, &hmac_of(&keys.stored_key(), &[signed.as_bytes()]));
        client_final.push_str(",p=");
        STANDARD.encode_string(proof, &mut client_final);
        let signature = hmac_of(&keys.server_key, &[signed.as_bytes()]);
        Ok((AwaitServerFinal { signature }, client_final.into_bytes()))
    }
}

impl AwaitServerFinal {
    /// Checks that the server knows the verifier. Without it, AuthenticationOk is worth nothing.
    ///
    /// # Errors
    /// [`ScramError::ServerSignature`] when it does not, [`ScramError::Server`] when it reports an error.
    pub fn verify(self, server_final: &[u8]) -> Result<(), ScramError> {
        let mut attributes = Attributes::new(server_final)?;
        let part = attributes.next_part().unwrap_or_default();
        if let Some(error) = part.strip_prefix("e=") {
            return Err(ScramError::Server(error.to_owned()));
        }
        let signature = part.strip_prefix("v=").ok_or(ScramError::Malformed("server signature expected"))?;
        let signature = decode_key(signature.as_bytes()).ok_or(ScramError::Malformed("server signature"))?;
        if same(&signature, &self.signature) { Ok(()) } else { Err(ScramError::ServerSignature) }
    }
}

fn iterations(text: &str) -> Result<u32, ScramError> {
    let malformed = ScramError::Malformed("malformed iteration count");
    // At most ten digits, so that the number always fits.
    if text.is_empty() || text.len() > 10 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(malformed);
    }
    let asked: u64 = text.parse().map_err(|_| malformed)?;
    let granted = u32::try_from(asked).ok().filter(|count| (1..=MAX_ITERATIONS).contains(count));
    granted.ok_or(ScramError::Iterations { asked })
}

impl fmt::Debug for AwaitServerFirst {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("AwaitServerFirst")
    }
}

impl fmt::Debug for AwaitServerFinal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("AwaitServerFinal")
    }
}
