//! Passwords and random secrets, and the hashes that are kept of them.

use std::num::NonZeroU32;

use aws_lc_rs::{digest, pbkdf2, rand};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

/// Rounds of PBKDF2-HMAC-SHA-256 (OWASP's number of 2023).
const ROUNDS: NonZeroU32 = NonZeroU32::MIN.saturating_add(599_999);
/// More rounds than these are not computed for anybody.
const MOST_ROUNDS: u32 = 10_000_000;
const SCHEME: &str = "pbkdf2-sha256";
const SALT_BYTES: usize = 16;
const HASH_BYTES: usize = 32;

/// No randomness: the machine's fault.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the system gives no random bytes")]
pub struct NoRandomness;

/// `pbkdf2-sha256$ROUNDS$SALT$HASH`. Takes a fifth of a second of a core: not for an async task.
pub(crate) fn hash_password(password: &str) -> Result<String, NoRandomness> {
    let salt = random::<SALT_BYTES>()?;
    let hash = derive(password, ROUNDS, &salt);
    let (salt, hash) = (encode(&salt), encode(&hash));
    Ok(format!("{SCHEME}${ROUNDS}${salt}${hash}"))
}

/// Whether it is the password of that hash. As slow as [`hash_password`], also for a hash that is none.
pub(crate) fn is_password(password: &str, kept: &str) -> bool {
    // An empty hash equals nothing that is computed.
    let (rounds, salt, hash) = parse(kept).unwrap_or_else(|| (ROUNDS, vec![0; SALT_BYTES], Vec::new()));
    constant_time_equal(&derive(password, rounds, &salt), &hash)
}

/// A fresh secret of 160 bits as text of 32 letters and digits.
pub(crate) fn secret() -> Result<String, NoRandomness> {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let bytes = random::<32>()?;
    Ok(bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte & 31)])).collect())
}

pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest::digest(&digest::SHA256, bytes).as_ref());
    hash
}

pub(crate) fn encode(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

pub(crate) fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    (BASE64_URL_SAFE_NO_PAD.decode_slice(text, &mut bytes) == Ok(N)).then_some(bytes)
}

fn derive(password: &str, rounds: NonZeroU32, salt: &[u8]) -> [u8; HASH_BYTES] {
    let mut hash = [0; HASH_BYTES];
    pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, rounds, salt, password.as_bytes(), &mut hash);
    hash
}

fn parse(kept: &str) -> Option<(NonZeroU32, Vec<u8>, Vec<u8>)> {
    let mut parts = kept.split('$');
    let (scheme, rounds, salt, hash) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let rounds: NonZeroU32 = rounds.parse().ok()?;
    if scheme != SCHEME || parts.next().is_some() || rounds.get() > MOST_ROUNDS {
        return None;
    }
    let hash: [u8; HASH_BYTES] = decode(hash)?;
    Some((rounds, BASE64_URL_SAFE_NO_PAD.decode(salt).ok()?, hash.to_vec()))
}

fn constant_time_equal(one: &[u8], two: &[u8]) -> bool {
    aws_lc_rs::constant_time::verify_slices_are_equal(one, two).is_ok()
}

fn random<const N: usize>() -> Result<[u8; N], NoRandomness> {
    let mut bytes = [0; N];
    rand::fill(&mut bytes).map_err(|_| NoRandomness)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_its_own_and_no_other() {
        let kept = hash_password("correct horse").unwrap();
        assert!(is_password("correct horse", &kept));
        assert!(!is_password("correct horsf", &kept));
        assert!(!is_password("", &kept));
        assert_ne!(kept, hash_password("correct horse").unwrap(), "each has a salt of its own");
    }

    #[test]
    fn an_account_without_a_password_lets_nobody_in() {
        for kept in [
            "",
            "plain",
            "pbkdf2-sha256$600000$AAAA$",
            "pbkdf2-sha256$0$AAAA$AAAA",
            "pbkdf2-sha256$99999999$AA$AA",
        ] {
            assert!(!is_password("", kept) && !is_password(kept, kept), "{kept}");
        }
    }

    #[test]
    fn secrets_are_long_and_never_the_same() {
        let fresh = || secret().unwrap();
        assert!(fresh().len() == 32 && fresh() != fresh());
    }
}
