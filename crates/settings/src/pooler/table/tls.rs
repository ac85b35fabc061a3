use super::super::model::General;
use super::Status::{NoEffect, NotBuilt};
use super::{Kind, SSLMODE, Setting};

const NO_CLIENT_TLS: &str = "clients are not offered TLS (`client_tls_sslmode`)";

#[rustfmt::skip] // One line a setting.
pub(super) const SETTINGS: &[Setting<General>] = &[
    Setting::new("client_tls_sslmode", SSLMODE, "disable", NotBuilt(&["disable"]), "TLS of clients."),
    Setting::new("client_tls_key_file", Kind::Path, "", NoEffect(NO_CLIENT_TLS), "Key shown to clients."),
    Setting::new("client_tls_cert_file", Kind::Path, "", NoEffect(NO_CLIENT_TLS), "Certificate shown to clients."),
    Setting::new("client_tls_ca_file", Kind::Path, "", NoEffect(NO_CLIENT_TLS), "Authorities of client certificates."),
    Setting::new("client_tls_protocols", Kind::Text, "secure", NoEffect(NO_CLIENT_TLS), "TLS versions of clients."),
    Setting::new("client_tls_ciphers", Kind::Text, "default", NoEffect(NO_CLIENT_TLS), "TLS 1.2 ciphers of clients."),
    Setting::new("client_tls13_ciphers", Kind::Text, "", NoEffect(NO_CLIENT_TLS), "TLS 1.3 ciphers of clients."),
    Setting::new("client_tls_ecdhcurve", Kind::Text, "auto", NoEffect(NO_CLIENT_TLS), "Curve of key exchange."),
    Setting::new("client_tls_dheparams", Kind::Text, "auto", NoEffect(NO_CLIENT_TLS), "Parameters of key exchange."),
    Setting::new("server_tls_sslmode", SSLMODE, "prefer", NotBuilt(&["disable"]), "TLS to servers.").toml("disable"),
    Setting::new("server_tls_ca_file", Kind::Path, "", NotBuilt(&[""]), "Authorities of server certificates."),
    Setting::new("server_tls_key_file", Kind::Path, "", NotBuilt(&[""]), "Key shown to servers."),
    Setting::new("server_tls_cert_file", Kind::Path, "", NotBuilt(&[""]), "Certificate shown to servers."),
    Setting::new("server_tls_protocols", Kind::Text, "secure", NotBuilt(&["secure"]), "TLS versions to servers."),
    Setting::new("server_tls_ciphers", Kind::Text, "default", NotBuilt(&["default"]), "TLS 1.2 ciphers to servers."),
    Setting::new("server_tls13_ciphers", Kind::Text, "", NotBuilt(&[""]), "TLS 1.3 ciphers to servers."),
];
