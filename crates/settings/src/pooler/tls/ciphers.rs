//! Cipher suites by their OpenSSL names, and the words that OpenSSL has for groups of them.

use super::super::value::Refusal;
use super::{unknown, words};

/// A cipher suite. All of them have forward secrecy and authenticated encryption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of the standards")]
pub enum CipherSuite {
    Tls13Aes256GcmSha384,
    Tls13Aes128GcmSha256,
    Tls13Chacha20Poly1305Sha256,
    EcdheEcdsaAes256GcmSha384,
    EcdheEcdsaAes128GcmSha256,
    EcdheEcdsaChacha20Poly1305,
    EcdheRsaAes256GcmSha384,
    EcdheRsaAes128GcmSha256,
    EcdheRsaChacha20Poly1305,
}

/// Those of TLS 1.3, in the order in which they are liked.
const TLS13: [CipherSuite; 3] = [
    CipherSuite::Tls13Aes256GcmSha384,
    CipherSuite::Tls13Aes128GcmSha256,
    CipherSuite::Tls13Chacha20Poly1305Sha256,
];
/// Those of TLS 1.2 likewise.
const TLS12: [CipherSuite; 6] = [
    CipherSuite::EcdheEcdsaAes256GcmSha384,
    CipherSuite::EcdheEcdsaAes128GcmSha256,
    CipherSuite::EcdheEcdsaChacha20Poly1305,
    CipherSuite::EcdheRsaAes256GcmSha384,
    CipherSuite::EcdheRsaAes128GcmSha256,
    CipherSuite::EcdheRsaChacha20Poly1305,
];

/// PgBouncer's words for "what is good".
const DEFAULTS: [&str; 5] = ["default", "secure", "fast", "normal", "all"];
/// OpenSSL's words for kinds of suites, none of which is built: to exclude them changes nothing.
const KINDS_NOT_BUILT: [&str; 34] = [
    "aNULL",
    "eNULL",
    "NULL",
    "MD5",
    "RC4",
    "RC2",
    "DES",
    "3DES",
    "EXP",
    "EXPORT",
    "EXPORT40",
    "EXPORT56",
    "LOW",
    "MEDIUM",
    "SEED",
    "IDEA",
    "CAMELLIA",
    "CAMELLIA128",
    "CAMELLIA256",
    "ARIA",
    "PSK",
    "kPSK",
    "SRP",
    "kRSA",
    "RSA",
    "DHE",
    "EDH",
    "kDHE",
    "ADH",
    "AECDH",
    "aDSS",
    "DSS",
    "SHA1",
    "SHA",
];

impl CipherSuite {
    /// As OpenSSL spells it.
    #[must_use]
    pub const fn openssl_name(self) -> &'static str {
        match self {
            Self::Tls13Aes256GcmSha384 => "TLS_AES_256_GCM_SHA384",
            Self::Tls13Aes128GcmSha256 => "TLS_AES_128_GCM_SHA256",
            Self::Tls13Chacha20Poly1305Sha256 => "TLS_CHACHA20_POLY1305_SHA256",
            Self::EcdheEcdsaAes256GcmSha384 => "ECDHE-ECDSA-AES256-GCM-SHA384",
            Self::EcdheEcdsaAes128GcmSha256 => "ECDHE-ECDSA-AES128-GCM-SHA256",
            Self::EcdheEcdsaChacha20Poly1305 => "ECDHE-ECDSA-CHACHA20-POLY1305",
            Self::EcdheRsaAes256GcmSha384 => "ECDHE-RSA-AES256-GCM-SHA384",
            Self::EcdheRsaAes128GcmSha256 => "ECDHE-RSA-AES128-GCM-SHA256",
            Self::EcdheRsaChacha20Poly1305 => "ECDHE-RSA-CHACHA20-POLY1305",
        }
    }

    /// Whether OpenSSL's word for a kind of suites covers this one of TLS 1.2.
    fn is_kind(self, word: &str) -> bool {
        let name = self.openssl_name();
        let ecdsa = name.contains("-ECDSA-");
        match word.to_ascii_uppercase().as_str() {
            "ALL"
            | "HIGH"
            | "DEFAULT"
            | "COMPLEMENTOFDEFAULT"
            | "TLSV1.2"
            | "ECDHE"
            | "EECDH"
            | "KECDHE"
            | "KEECDH" => true,
            "ECDSA" | "AECDSA" => ecdsa,
            "ARSA" => !ecdsa,
            "AES" | "AESGCM" => name.contains("-AES"),
            "AES128" => name.contains("-AES128"),
            "AES256" => name.contains("-AES256"),
            "CHACHA20" => name.contains("-CHACHA20"),
            "SHA256" => !name.contains("SHA384"),
            "SHA384" => name.contains("SHA384"),
            _ => false,
        }
    }
}

/// Suites of TLS 1.2, the liked ones first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls12Ciphers {
    pub(super) text: String,
    /// Never empty.
    pub suites: Vec<CipherSuite>,
}

impl Default for Tls12Ciphers {
    fn default() -> Self {
        Self { text: "default".to_owned(), suites: TLS12.into() }
    }
}

impl Tls12Ciphers {
    /// One of PgBouncer's words, or a list in OpenSSL's way: names, kinds (`HIGH`, `ECDHE+AESGCM`), and what is
    /// excluded (`!aNULL`).
    pub(super) fn parse(text: &str) -> Result<Self, Refusal> {
        if DEFAULTS.iter().any(|word| word.eq_ignore_ascii_case(text)) {
            return Ok(Self { text: text.to_owned(), suites: TLS12.into() });
        }
        let mut suites: Vec<CipherSuite> = Vec::new();
        let mut banned: Vec<CipherSuite> = Vec::new();
        for word in words(text) {
            if word.starts_with('@') {
                // @STRENGTH, @SECLEVEL: all suites here are of the strongest kind.
                continue;
            }
            let (exclude, kinds) = match word.strip_prefix(['!', '-']) {
                Some(kinds) => (true, kinds),
                None => (false, word),
            };
            let matching = matching(kinds.trim_start_matches('+'))?;
            if kinds.starts_with('+') {
                // To the end, those that are there already.
                let (moved, mut kept): (Vec<_>, Vec<_>) =
                    suites.iter().partition(|suite| matching.contains(suite));
                kept.extend(moved);
                suites = kept;
            } else if exclude {
                suites.retain(|suite| !matching.contains(suite));
                if word.starts_with('!') {
                    banned.extend(matching);
                }
            } else {
                for suite in matching {
                    if !suites.contains(&suite) && !banned.contains(&suite) {
                        suites.push(suite);
                    }
                }
            }
        }
        if suites.is_empty() {
            let known = TLS12.map(CipherSuite::openssl_name).join(", ");
            return Err(Refusal::Bad(format!("it leaves no suite that is built, which are {known}")));
        }
        Ok(Self { text: text.to_owned(), suites })
    }
}

/// The suites that a name, a kind, or several kinds joined by `+` mean; none if it is a kind that is not built.
fn matching(word: &str) -> Result<Vec<CipherSuite>, Refusal> {
    if let Some(&suite) = TLS12.iter().find(|suite| suite.openssl_name().eq_ignore_ascii_case(word)) {
        return Ok(vec![suite]);
    }
    let mut found: Vec<CipherSuite> = TLS12.into();
    for kind in word.split('+') {
        let is_kind = TLS12.iter().any(|suite| suite.is_kind(kind));
        if !is_kind && !KINDS_NOT_BUILT.iter().any(|known| known.eq_ignore_ascii_case(kind)) {
            let words = DEFAULTS.into_iter().chain(["HIGH"]);
            return Err(unknown(kind, words.chain(TLS12.map(CipherSuite::openssl_name))));
        }
        found.retain(|suite| suite.is_kind(kind));
    }
    Ok(found)
}

/// Suites of TLS 1.3, the liked ones first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls13Ciphers {
    pub(super) text: String,
    /// Never empty.
    pub suites: Vec<CipherSuite>,
}

impl Default for Tls13Ciphers {
    fn default() -> Self {
        Self { text: String::new(), suites: TLS13.into() }
    }
}

impl Tls13Ciphers {
    /// Names with colons between; nothing means all.
    pub(super) fn parse(text: &str) -> Result<Self, Refusal> {
        let mut suites = Vec::new();
        for word in words(text) {
            let suite = TLS13.iter().find(|suite| suite.openssl_name().eq_ignore_ascii_case(word));
            let Some(&suite) = suite else {
                return Err(unknown(word, TLS13.map(CipherSuite::openssl_name)));
            };
            if !suites.contains(&suite) {
                suites.push(suite);
            }
        }
        if suites.is_empty() {
            suites = TLS13.into();
        }
        Ok(Self { text: text.to_owned(), suites })
    }
}
