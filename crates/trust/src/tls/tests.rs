use super::*;
use crate::root::RootKey;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, NamedGroup, ServerConnection};
use std::time::{SystemTime, UNIX_EPOCH};

const DAY_MS: u64 = 86_400_000;

#[test]
fn a_pinned_client_reaches_its_role_by_name_and_address() {
    let root = RootKey::generate().unwrap();
    let server = server(&root, now_ms());
    for name in ["relay.example", "127.0.0.1", "::1"] {
        let groups = shake(client(&root), &server, name).unwrap();
        assert_eq!(groups, NamedGroup::X25519MLKEM768, "{name}");
    }
}

#[test]
fn another_networks_chain_is_refused() {
    let (root, other) = (RootKey::generate().unwrap(), RootKey::generate().unwrap());
    refused(shake(client(&root), &server(&other, now_ms()), "relay.example"), "UnknownIssuer");
}

/// The root's certificate is public: whoever shows it beside a leaf of their own gains nothing.
#[test]
fn a_leaf_of_another_root_beside_the_right_root_is_refused() {
    let (root, other) = (RootKey::generate().unwrap(), RootKey::generate().unwrap());
    let stranger = issue(&other, now_ms());
    let mixed =
        stranger.chain_pem().split_inclusive("-----END CERTIFICATE-----\n").next().unwrap().to_owned();
    let mixed = mixed + &root.certificate(now_ms()).unwrap().pem();
    let certificate = RoleCertificate::from_pem(&mixed, &stranger.key_pem()).unwrap();
    refused(
        shake(client(&root), &server_config(&certificate, &[]).unwrap(), "relay.example"),
        "UnknownIssuer",
    );
}

/// A network's name with another key inside: the certificate's text is copied, the key is new.
#[test]
fn a_changed_root_is_refused() {
    let root = RootKey::generate().unwrap();
    let leaf = issue(&root, now_ms());
    let only_leaf =
        leaf.chain_pem().split_inclusive("-----END CERTIFICATE-----\n").next().unwrap().to_owned();
    let changed = RootKey::generate().unwrap().certificate(now_ms()).unwrap().pem();
    let certificate = RoleCertificate::from_pem(&(only_leaf.clone() + &changed), &leaf.key_pem()).unwrap();
    refused(
        shake(client(&root), &server_config(&certificate, &[]).unwrap(), "relay.example"),
        "UnknownIssuer",
    );
    // Without the root in the chain there is nothing to pin.
    let certificate = RoleCertificate::from_pem(&only_leaf, &leaf.key_pem()).unwrap();
    refused(
        shake(client(&root), &server_config(&certificate, &[]).unwrap(), "relay.example"),
        "UnknownIssuer",
    );
}

#[test]
fn an_expired_leaf_and_one_from_the_future_are_refused() {
    let root = RootKey::generate().unwrap();
    let old = server(&root, now_ms() - (crate::ROLE_CERTIFICATE_DAYS + 1) * DAY_MS);
    refused(shake(client(&root), &old, "relay.example"), "Expired");
    refused(shake(client(&root), &server(&root, now_ms() + DAY_MS), "relay.example"), "NotValidYet");
}

#[test]
fn another_name_and_another_role_are_refused() {
    let root = RootKey::generate().unwrap();
    let server = server(&root, now_ms());
    refused(shake(client(&root), &server, "api.example"), "NotValidForName");
    let api = client_config(root.network(), CertificateRole::Api, &[b"holdfast/1"]).unwrap();
    refused(shake(api, &server, "relay.example"), "InvalidPurpose");
}

/// Row 94: clients that offered P-384 first made every handshake many times as dear.
#[test]
fn a_client_that_prefers_p384_still_gets_x25519() {
    let root = RootKey::generate().unwrap();
    let slow = provider();
    let slow = CryptoProvider {
        kx_groups: vec![kx_group::SECP384R1, kx_group::X25519, kx_group::SECP256R1],
        ..slow
    };
    let slow = Arc::new(slow);
    let verifier = Arc::new(PinnedVerifier::new(root.network(), CertificateRole::Relay, &slow));
    let config = ClientConfig::builder_with_provider(slow)
        .with_protocol_versions(&[&TLS13])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    let group = shake(Arc::new(config), &server(&root, now_ms()), "relay.example").unwrap();
    assert_eq!(group, NamedGroup::X25519);
}

#[test]
fn tls_1_2_is_not_spoken() {
    let root = RootKey::generate().unwrap();
    let provider = Arc::new(default_provider());
    let verifier = Arc::new(PinnedVerifier::new(root.network(), CertificateRole::Relay, &provider));
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS12])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    assert!(shake(Arc::new(config), &server(&root, now_ms()), "relay.example").is_err());
}

fn client(root: &RootKey) -> Arc<ClientConfig> {
    client_config(root.network(), CertificateRole::Relay, &[b"holdfast/1"]).unwrap()
}

fn issue(root: &RootKey, at_ms: u64) -> RoleCertificate {
    let names = ["relay.example", "127.0.0.1", "::1"].map(str::to_owned);
    root.issue(CertificateRole::Relay, &names, at_ms).unwrap()
}

fn server(root: &RootKey, at_ms: u64) -> Arc<ServerConfig> {
    let made = issue(root, at_ms);
    // As a role does it: by way of the files.
    let read = RoleCertificate::from_pem(&made.chain_pem(), &made.key_pem()).unwrap();
    server_config(&read, &[b"holdfast/1"]).unwrap()
}

/// A handshake in memory; gives the group that was agreed on.
fn shake(
    client: Arc<ClientConfig>,
    server: &Arc<ServerConfig>,
    name: &str,
) -> Result<NamedGroup, rustls::Error> {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut client = ClientConnection::new(client, name).unwrap();
    let mut server = ServerConnection::new(Arc::clone(server)).unwrap();
    for _ in 0..10 {
        let mut wire = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut wire).unwrap();
        }
        let mut rest = wire.as_slice();
        while !rest.is_empty() {
            server.read_tls(&mut rest).unwrap();
            server.process_new_packets()?;
        }
        let mut wire = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut wire).unwrap();
        }
        let mut rest = wire.as_slice();
        while !rest.is_empty() {
            client.read_tls(&mut rest).unwrap();
            client.process_new_packets()?;
        }
    }
    assert!(!client.is_handshaking() && !server.is_handshaking());
    Ok(client.negotiated_key_exchange_group().unwrap().name())
}

fn refused(result: Result<NamedGroup, rustls::Error>, cause: &str) {
    let error = format!("{:?}", result.unwrap_err());
    assert!(error.contains(cause), "{error}");
}

#[expect(clippy::disallowed_methods, reason = "rustls looks at the real clock")]
fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64
}
