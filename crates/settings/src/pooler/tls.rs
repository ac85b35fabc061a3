//! TLS as it is written: modes, files, and the names of protocols, ciphers and groups. Nothing here opens a file.

use super::value::{Refusal, Value};
use std::path::PathBuf;

mod ciphers;
mod groups;
mod protocols;
#[cfg(test)]
mod tests;

pub use ciphers::{CipherSuite, Tls12Ciphers, Tls13Ciphers};
pub use groups::{KeyExchange, KeyExchangeGroups};
pub use protocols::TlsProtocols;

/// How much TLS is asked for (`client_tls_sslmode`, `server_tls_sslmode`). The later, the more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SslMode {
    /// None; it is not even offered or asked for.
    Disable,
    /// Both are well; as `Prefer`, like PgBouncer.
    Allow,
    /// Both are well: a client may choose, a server is asked first.
    Prefer,
    /// TLS, whoever the other side is.
    Require,
    /// TLS, and the other side shows a certificate of an authority in the file.
    VerifyCa,
    /// Like `VerifyCa`; to a server, its certificate must also hold the name that was connected to.
    VerifyFull,
}

impl SslMode {
    /// The other side's certificate is checked.
    #[must_use]
    pub fn verifies(self) -> bool {
        self >= Self::VerifyCa
    }
}

/// TLS on one side, towards clients or towards servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// How much.
    pub mode: SslMode,
    /// Key of the certificate that we show (PEM).
    pub key_file: Option<PathBuf>,
    /// The certificate that we show, with those that lead to its authority (PEM).
    pub cert_file: Option<PathBuf>,
    /// Authorities of the other side's certificate (PEM).
    pub ca_file: Option<PathBuf>,
    /// Versions.
    pub protocols: TlsProtocols,
    /// Suites of TLS 1.2.
    pub ciphers: Tls12Ciphers,
    /// Suites of TLS 1.3.
    pub tls13_ciphers: Tls13Ciphers,
    /// Groups of the key exchange.
    pub groups: KeyExchangeGroups,
}

impl Tls {
    /// None, with every choice that would hold if there were any.
    #[must_use]
    pub fn disabled() -> Self {
        Self {
            mode: SslMode::Disable,
            key_file: None,
            cert_file: None,
            ca_file: None,
            protocols: TlsProtocols::default(),
            ciphers: Tls12Ciphers::default(),
            tls13_ciphers: Tls13Ciphers::default(),
            groups: KeyExchangeGroups::default(),
        }
    }
}

/// The words of a list in OpenSSL's way.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split([':', ',', ' ', '\t']).filter(|word| !word.is_empty())
}

/// A word that means nothing here, with all that would.
fn unknown(word: &str, known: impl IntoIterator<Item = &'static str>) -> Refusal {
    let known: Vec<&str> = known.into_iter().collect();
    Refusal::Bad(format!("{} is none of {}", crate::diagnostic::quoted(word), known.join(", ")))
}

macro_rules! as_written {
    ($($type:ty),*) => {$(
        impl Value for $type {
            fn read(text: &str, _kind: &super::table::Kind) -> Result<Self, Refusal> {
                Self::parse(text)
            }
            fn show(&self) -> String {
                self.text.clone()
            }
        }
    )*};
}

as_written!(TlsProtocols, Tls12Ciphers, Tls13Ciphers, KeyExchangeGroups);
