//! The primitives of `Noise_IK_25519_AESGCM_SHA256` from aws-lc-rs, as snow asks for them.

use super::KEY_BYTES;
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::agreement::{PrivateKey, UnparsedPublicKey, X25519, agree};
use aws_lc_rs::digest::{self, SHA256};
use aws_lc_rs::rand::{self, SecureRandom, SystemRandom};
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::CryptoResolver;
use snow::types::{Cipher, Dh, Hash, Random};

const TAG_BYTES: usize = 16;

pub(super) fn public_key(private: &[u8; KEY_BYTES]) -> Option<[u8; KEY_BYTES]> {
    let key = PrivateKey::from_private_key(&X25519, private).ok()?;
    key.compute_public_key().ok()?.as_ref().try_into().ok()
}

/// The nonce of message `counter` (Noise §12.3: four zero bytes, then the counter, big-endian).
pub(super) fn nonce(counter: u64) -> Nonce {
    let mut bytes = [0; NONCE_LEN];
    bytes[NONCE_LEN - 8..].copy_from_slice(&counter.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}

pub(super) fn aes_key(key: &[u8; KEY_BYTES]) -> Option<LessSafeKey> {
    UnboundKey::new(&AES_256_GCM, key).ok().map(LessSafeKey::new)
}

pub(super) struct Resolver;

impl CryptoResolver for Resolver {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(SystemRandomness(SystemRandom::new())))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        matches!(choice, DHChoice::Curve25519).then(|| Box::new(KeyPair::default()) as _)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        matches!(choice, HashChoice::SHA256).then(|| Box::new(Sha256(digest::Context::new(&SHA256))) as _)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        matches!(choice, CipherChoice::AESGCM).then(|| Box::new(AesGcm(None)) as _)
    }
}

struct SystemRandomness(SystemRandom);

impl Random for SystemRandomness {
    fn try_fill_bytes(&mut self, dest: &mut [u8]) -> Result<(), snow::Error> {
        self.0.fill(dest).map_err(|_| snow::Error::Rng)
    }
}

#[derive(Default)]
struct KeyPair {
    key: Option<PrivateKey>,
    private: [u8; KEY_BYTES],
    public: [u8; KEY_BYTES],
}

impl Dh for KeyPair {
    fn name(&self) -> &'static str {
        "25519"
    }

    fn pub_len(&self) -> usize {
        KEY_BYTES
    }

    fn priv_len(&self) -> usize {
        KEY_BYTES
    }

    fn set(&mut self, private: &[u8]) {
        let Ok(private) = private.try_into() else { return };
        self.private = private;
        self.key = PrivateKey::from_private_key(&X25519, &private).ok();
        // A key that is refused fails at its first use.
        self.public = public_key(&private).unwrap_or_default();
    }

    fn generate(&mut self, _rng: &mut dyn Random) -> Result<(), snow::Error> {
        let mut private = [0; KEY_BYTES];
        rand::fill(&mut private).map_err(|_| snow::Error::Rng)?;
        self.set(&private);
        Ok(())
    }

    fn pubkey(&self) -> &[u8] {
        &self.public
    }

    fn privkey(&self) -> &[u8] {
        &self.private
    }

    fn dh(&self, public: &[u8], out: &mut [u8]) -> Result<(), snow::Error> {
        let key = self.key.as_ref().ok_or(snow::Error::Dh)?;
        let public = public.get(..KEY_BYTES).ok_or(snow::Error::Dh)?;
        // An all-zero secret, from a public key of small order, is refused by the library.
        agree(key, UnparsedPublicKey::new(&X25519, public), snow::Error::Dh, |secret| {
            out.get_mut(..secret.len()).ok_or(snow::Error::Dh)?.copy_from_slice(secret);
            Ok(())
        })
    }
}

struct Sha256(digest::Context);

impl Hash for Sha256 {
    fn name(&self) -> &'static str {
        "SHA256"
    }

    fn block_len(&self) -> usize {
        64
    }

    fn hash_len(&self) -> usize {
        32
    }

    fn reset(&mut self) {
        self.0 = digest::Context::new(&SHA256);
    }

    fn input(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    fn result(&mut self, out: &mut [u8]) {
        let context = std::mem::replace(&mut self.0, digest::Context::new(&SHA256));
        out[..32].copy_from_slice(context.finish().as_ref());
    }
}

struct AesGcm(Option<LessSafeKey>);

impl Cipher for AesGcm {
    fn name(&self) -> &'static str {
        "AESGCM"
    }

    fn set(&mut self, key: &[u8; KEY_BYTES]) {
        self.0 = aes_key(key);
    }

    fn encrypt(&self, counter: u64, authtext: &[u8], plaintext: &[u8], out: &mut [u8]) -> usize {
        let length = plaintext.len();
        let (text, rest) = out.split_at_mut(length);
        text.copy_from_slice(plaintext);
        let sealed = self
            .0
            .as_ref()
            .and_then(|key| key.seal_in_place_separate_tag(nonce(counter), Aad::from(authtext), text).ok());
        match sealed {
            Some(tag) => rest[..TAG_BYTES].copy_from_slice(tag.as_ref()),
            // The trait has no error. What does not open anywhere is the safe one.
            None => out[..length + TAG_BYTES].fill(0),
        }
        length + TAG_BYTES
    }

    fn decrypt(
        &self,
        counter: u64,
        authtext: &[u8],
        ciphertext: &[u8],
        out: &mut [u8],
    ) -> Result<usize, snow::Error> {
        let key = self.0.as_ref().ok_or(snow::Error::Decrypt)?;
        let length = ciphertext.len().checked_sub(TAG_BYTES).ok_or(snow::Error::Decrypt)?;
        let (text, tag) = ciphertext.split_at(length);
        let out = out.get_mut(..length).ok_or(snow::Error::Decrypt)?;
        key.open_separate_gather(nonce(counter), Aad::from(authtext), text, tag, out)
            .map_err(|_| snow::Error::Decrypt)?;
        Ok(length)
    }
}
