//! The server's side: checks a client against a verifier. Nothing here is costly.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::attributes::{Attributes, nonce_is_valid};
use super::binding::{self, ChannelBinding};
use super::{
    KEY_CHARS, NONCE_CHARS, ScramError, ScramKeys, Verifier, decode_key, hmac_of, nonce, sha256, xor,
};
use crate::secret::same;

/// A header without a binding, in base64.
const UNBOUND_CHARS: usize = 4;

/// The mechanism was offered; the client's first message comes next.
pub struct AwaitClientFirst {
    verifier: Arc<Verifier>,
    nonce: [u8; NONCE_CHARS],
    offered: Option<ChannelBinding>,
}

/// The challenge is sent; the client's proof comes next.
pub struct AwaitClientFinal {
    verifier: Arc<Verifier>,
    /// What the client must repeat of its own header, in base64.
    binding: Cow<'static, str>,
    /// `client-first-message-bare , server-first-message`, the beginning of what both sides sign.
    transcript: String,
    server_first: Range<usize>,
    nonce: Range<usize>,
}

/// The client knows the password.
#[derive(Debug)]
pub struct Verified {
    /// The message that proves the server to the client.
    pub server_final: Vec<u8>,
    /// Good for logging in where the same verifier is stored.
    pub keys: ScramKeys,
}

impl AwaitClientFirst {
    /// Begins an exchange; of `random` 18 bytes become the server's part of the nonce.
    #[must_use]
    pub fn new(verifier: Arc<Verifier>, random: &[u8; 32]) -> Self {
        Self { verifier, nonce: nonce(random), offered: None }
    }

    /// Offers to bind the channel; [`super::MECHANISM_PLUS`] was offered as well.
    #[must_use]
    pub fn offering(mut self, binding: Option<ChannelBinding>) -> Self {
        self.offered = binding;
        self
    }

    /// Channel binding was offered.
    #[must_use]
    pub const fn offers_binding(&self) -> bool {
        self.offered.is_some()
    }

    /// Reads the first message of a client that chose [`super::MECHANISM`].
    ///
    /// # Errors
    /// It is malformed, or asks for what is not offered.
    pub fn answer(self, client_first: &[u8]) -> Result<AwaitClientFinal, ScramError> {
        self.answer_to(client_first, false)
    }

    /// Reads the first message of a client that chose [`super::MECHANISM_PLUS`].
    ///
    /// # Errors
    /// Likewise.
    pub fn answer_bound(self, client_first: &[u8]) -> Result<AwaitClientFinal, ScramError> {
        self.answer_to(client_first, true)
    }

    fn answer_to(self, client_first: &[u8], bound: bool) -> Result<AwaitClientFinal, ScramError> {
        let mut attributes = Attributes::new(client_first)?;
        let binding = binding::expected(attributes.next_part(), bound, self.offered.as_ref())?;
        match attributes.next_part() {
            Some("") => (),
            Some(other) if other.starts_with("a=") => return Err(ScramError::AuthorizationIdentity),
            _ => return Err(ScramError::Malformed("comma expected after the channel-binding flag")),
        }
        let bare = attributes.rest();
        attributes.expect('n', "attribute \"n\" expected")?;
        let client_nonce = attributes.expect('r', "attribute \"r\" expected")?;
        if !nonce_is_valid(client_nonce) {
            return Err(ScramError::Malformed("non-printable characters in nonce"));
        }
        let server_nonce = std::str::from_utf8(&self.nonce).unwrap_or_default();
        Ok(AwaitClientFinal::challenge(self.verifier, binding, bare, [client_nonce, server_nonce]))
    }
}

impl AwaitClientFinal {
    pub(super) fn challenge(
        verifier: Arc<Verifier>,
        binding: Cow<'static, str>,
        bare: &str,
        [client_nonce, server_nonce]: [&str; 2],
    ) -> Self {
        let mut transcript = String::with_capacity(bare.len() + client_nonce.len() + 128);
        transcript.push_str(bare);
        transcript.push(',');
        let start = transcript.len();
        transcript.push_str("r=");
        let nonce_start = transcript.len();
        transcript.push_str(client_nonce);
        transcript.push_str(server_nonce);
        let nonce_end = transcript.len();
        transcript.push_str(",s=");
        STANDARD.encode_string(verifier.salt(), &mut transcript);
        transcript.push_str(",i=");
        transcript.push_str(&verifier.iterations().to_string());
        Self {
            verifier,
            binding,
            server_first: start..transcript.len(),
            nonce: nonce_start..nonce_end,
            transcript,
        }
    }

    /// The challenge to send.
    #[must_use]
    pub fn server_first(&self) -> &[u8] {
        self.transcript.as_bytes().get(self.server_first.clone()).unwrap_or_default()
    }

    /// Checks the client's proof.
    ///
    /// # Errors
    /// [`ScramError::Proof`] when the client does not know the password or the user does not exist;
    /// others when the message is malformed.
    pub fn finish(mut self, client_final: &[u8]) -> Result<Verified, ScramError> {
        let mut attributes = Attributes::new(client_final)?;
        if attributes.expect('c', "attribute \"c\" expected")? != self.binding {
            let is_bound = self.binding.len() > UNBOUND_CHARS;
            return Err(if is_bound {
                ScramError::ChannelBindingMismatch
            } else {
                ScramError::Malformed("unexpected channel-binding attribute")
            });
        }
        let nonce = attributes.expect('r', "attribute \"r\" expected")?;
        if Some(nonce) != self.transcript.get(self.nonce.clone()) {
            return Err(ScramError::Nonce);
        }
        // Extensions may stand here; the proof is the last attribute.
        let (signed, proof) = loop {
            let signed = attributes.consumed();
            let part = attributes.next_part().ok_or(ScramError::Malformed("proof expected"))?;
            if let Some(proof) = part.strip_prefix("p=") {
                break (signed, proof);
            }
        };
        if !attributes.rest().is_empty() || attributes.next_part().is_some() {
            return Err(ScramError::Malformed("text after the proof"));
        }
        let proof = decode_key(proof.as_bytes()).ok_or(ScramError::Malformed("malformed proof"))?;
        self.transcript.push(',');
        self.transcript.push_str(signed);
        self.verify(&proof)
    }

    fn verify(&self, proof: &[u8; 32]) -> Result<Verified, ScramError> {
        let signed = self.transcript.as_bytes();
        let client_key = xor(proof, &hmac_of(self.verifier.stored_key(), &[signed]));
        let right = same(&sha256(&client_key), self.verifier.stored_key());
        let signature = hmac_of(self.verifier.server_key(), &[signed]);
        if !(right & self.verifier.is_genuine()) {
            return Err(ScramError::Proof);
        }
        let mut server_final = String::with_capacity(2 + KEY_CHARS);
        server_final.push_str("v=");
        STANDARD.encode_string(signature, &mut server_final);
        let keys = ScramKeys { client_key, server_key: *self.verifier.server_key() };
        Ok(Verified { server_final: server_final.into_bytes(), keys })
    }
}

impl fmt::Debug for AwaitClientFirst {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("AwaitClientFirst")
    }
}

impl fmt::Debug for AwaitClientFinal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("AwaitClientFinal")
    }
}
