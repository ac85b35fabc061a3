//! Versions of TLS, in PgBouncer's words.

use super::super::value::Refusal;
use super::{unknown, words};

/// Which versions may be used. Those before 1.2 are not built (RFC 8996 forbids them).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsProtocols {
    pub(super) text: String,
    /// TLS 1.2.
    pub tls12: bool,
    /// TLS 1.3.
    pub tls13: bool,
    /// Versions before 1.2 were asked for too.
    pub asks_for_old: bool,
}

const WORDS: [&str; 9] =
    ["secure", "default", "all", "legacy", "tlsv1", "tlsv1.0", "tlsv1.1", "tlsv1.2", "tlsv1.3"];

impl Default for TlsProtocols {
    fn default() -> Self {
        Self { text: "secure".to_owned(), tls12: true, tls13: true, asks_for_old: false }
    }
}

impl TlsProtocols {
    /// Words with commas or colons between; a `!` before one takes it away again.
    pub(super) fn parse(text: &str) -> Result<Self, Refusal> {
        let mut protocols = Self { text: text.to_owned(), tls12: false, tls13: false, asks_for_old: false };
        for word in words(text) {
            let (on, name) = word.strip_prefix('!').map_or((true, word), |name| (false, name));
            let (old, tls12, tls13) = match name.to_ascii_lowercase().as_str() {
                "secure" | "default" => (false, true, true),
                "all" | "legacy" | "tlsv1" => (true, true, true),
                "tlsv1.0" | "tlsv1.1" => (true, false, false),
                "tlsv1.2" => (false, true, false),
                "tlsv1.3" => (false, false, true),
                _ => return Err(unknown(name, WORDS)),
            };
            for (flag, named) in [
                (&mut protocols.asks_for_old, old),
                (&mut protocols.tls12, tls12),
                (&mut protocols.tls13, tls13),
            ] {
                if named {
                    *flag = on;
                }
            }
        }
        if protocols.tls12 || protocols.tls13 {
            Ok(protocols)
        } else {
            Err(Refusal::Bad(
                "it leaves neither tlsv1.2 nor tlsv1.3, and older versions are not safe".to_owned(),
            ))
        }
    }
}
