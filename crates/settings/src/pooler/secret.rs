use super::model::Secret;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

/// The longest salt that a login takes.
const MAX_SALT_BYTES: usize = 256;

/// Length of StoredKey and ServerKey: one SHA-256 (RFC 7677).
const KEY_BYTES: usize = 32;

impl Secret {
    /// Tells by its form what a stored secret is, as a login does (`pgwire::accept::LoginSecret`). As in PgBouncer, a malformed `md5…` or `SCRAM-SHA-256$…`
    /// is a plain password.
    #[must_use]
    pub fn classify(text: &str) -> Self {
        if is_md5(text) {
            Self::Md5(text.to_owned())
        } else if is_scram_verifier(text) {
            Self::ScramVerifier(text.to_owned())
        } else {
            Self::Plain(text.to_owned())
        }
    }
}

fn is_md5(text: &str) -> bool {
    text.strip_prefix("md5").is_some_and(|digits| {
        digits.len() == 32 && digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
    })
}

fn is_scram_verifier(text: &str) -> bool {
    let parts = || {
        let (iterations, rest) = text.strip_prefix("SCRAM-SHA-256$")?.split_once(':')?;
        let (salt, keys) = rest.split_once('$')?;
        let (stored_key, server_key) = keys.split_once(':')?;
        Some((iterations, salt, stored_key, server_key))
    };
    let Some((iterations, salt, stored_key, server_key)) = parts() else { return false };
    let decodes_to = |text: &str, fits: fn(usize) -> bool| {
        BASE64_STANDARD.decode(text).is_ok_and(|bytes| fits(bytes.len()))
    };
    iterations.bytes().all(|byte| byte.is_ascii_digit())
        && iterations.parse::<i32>().is_ok_and(|iterations| iterations > 0)
        && decodes_to(salt, |length| (1..=MAX_SALT_BYTES).contains(&length))
        && decodes_to(stored_key, |length| length == KEY_BYTES)
        && decodes_to(server_key, |length| length == KEY_BYTES)
}

#[cfg(test)]
mod tests {
    use super::Secret;

    const VERIFIER: &str = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=";

    #[test]
    fn secrets_are_told_apart_by_their_form() {
        assert!(matches!(Secret::classify("md5cbdbf5d5d5a4d1bbd4dc8f3eaf6d1a11"), Secret::Md5(_)));
        assert!(matches!(Secret::classify(VERIFIER), Secret::ScramVerifier(_)));
        assert!(matches!(Secret::classify("hello"), Secret::Plain(_)));
    }

    #[test]
    fn malformed_verifier_is_a_plain_password() {
        for text in [
            "md5abc",
            "md5zzzzf5d5d5a4d1bbd4dc8f3eaf6d1a11",
            "md5CBDBF5D5D5A4D1BBD4DC8F3EAF6D1A11",
            "SCRAM-SHA-256$",
            &VERIFIER[..100],
            &VERIFIER.replace("4096", "0"),
        ] {
            assert!(matches!(Secret::classify(text), Secret::Plain(_)), "{text}");
        }
    }
}
