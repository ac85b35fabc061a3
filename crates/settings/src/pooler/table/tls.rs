use super::super::model::General;
use super::Status::NoEffect;
use super::{Kind, SSLMODE, Setting, field};

const NO_DHE: &str = "key exchange is by elliptic curves or ML-KEM alone, which need no parameters";

#[rustfmt::skip] // One line a setting.
pub(super) const SETTINGS: &[Setting<General>] = &[
    Setting::new("client_tls_sslmode", SSLMODE, "disable", field!(General, client_tls.mode), "TLS of clients: offered from `allow` on, demanded from `require` on (but not over the Unix socket), with a client certificate from `verify-ca` on."),
    Setting::new("client_tls_key_file", Kind::Path, "", field!(General, client_tls.key_file), "Key of the certificate shown to clients (PEM)."),
    Setting::new("client_tls_cert_file", Kind::Path, "", field!(General, client_tls.cert_file), "Certificate shown to clients, with those up to its authority (PEM)."),
    Setting::new("client_tls_ca_file", Kind::Path, "", field!(General, client_tls.ca_file), "Authorities of client certificates (PEM)."),
    Setting::new("client_tls_protocols", Kind::Text, "secure", field!(General, client_tls.protocols), "TLS versions of clients: `secure`, or of `tlsv1.2` and `tlsv1.3`."),
    Setting::new("client_tls_ciphers", Kind::Text, "default", field!(General, client_tls.ciphers), "TLS 1.2 ciphers of clients, by OpenSSL's names."),
    Setting::new("client_tls13_ciphers", Kind::Text, "", field!(General, client_tls.tls13_ciphers), "TLS 1.3 ciphers of clients, by OpenSSL's names; empty = all."),
    Setting::new("client_tls_ecdhcurve", Kind::Text, "auto", field!(General, client_tls.groups), "Groups of the key exchange with clients: `auto` or names such as `X25519:prime256v1`."),
    Setting::new("client_tls_dheparams", Kind::Text, "auto", NoEffect(NO_DHE), "Parameters of key exchange."),
    Setting::new("server_tls_sslmode", SSLMODE, "prefer", field!(General, server_tls.mode), "TLS to servers: asked for from `allow` on, demanded from `require` on, with a certificate of an authority from `verify-ca` on, which names the host with `verify-full`."),
    Setting::new("server_tls_ca_file", Kind::Path, "", field!(General, server_tls.ca_file), "Authorities of server certificates (PEM)."),
    Setting::new("server_tls_key_file", Kind::Path, "", field!(General, server_tls.key_file), "Key of the certificate shown to servers (PEM)."),
    Setting::new("server_tls_cert_file", Kind::Path, "", field!(General, server_tls.cert_file), "Certificate shown to servers that ask for one (PEM)."),
    Setting::new("server_tls_protocols", Kind::Text, "secure", field!(General, server_tls.protocols), "TLS versions to servers: `secure`, or of `tlsv1.2` and `tlsv1.3`."),
    Setting::new("server_tls_ciphers", Kind::Text, "default", field!(General, server_tls.ciphers), "TLS 1.2 ciphers to servers, by OpenSSL's names."),
    Setting::new("server_tls13_ciphers", Kind::Text, "", field!(General, server_tls.tls13_ciphers), "TLS 1.3 ciphers to servers, by OpenSSL's names; empty = all."),
];
