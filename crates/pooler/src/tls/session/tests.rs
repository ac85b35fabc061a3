//! Our two ends against each other, with every way in which bytes may be cut.

use super::super::context::{ToClients, ToServers};
use super::super::fixtures::{Authority, Certificate, Folder};
use super::super::{TlsContext, load};
use super::*;
use rcgen::PKCS_ECDSA_P256_SHA256;
use settings::pooler::load as load_settings;
use std::net::SocketAddr;

/// Clients and servers of one context, where `general` is further lines of the settings.
pub(crate) fn context(general: &str) -> (Arc<ToClients>, Arc<ToServers>) {
    let authority = Authority::new();
    let Certificate { pem, key_pem, .. } = authority.certify(&["localhost"], &PKCS_ECDSA_P256_SHA256);
    let folder = Folder::new(&[("key.pem", &key_pem), ("cert.pem", &pem), ("ca.pem", &authority.pem)]);
    let path = folder.path("pgbouncer.ini");
    let at = folder.folder().display();
    let text = format!(
        "[databases]\n* = host=localhost\n[pgbouncer]\nlisten_addr = 127.0.0.1\nunix_socket_dir =\nauth_type = any\n\
         client_tls_sslmode = require\nclient_tls_key_file = {at}/key.pem\nclient_tls_cert_file = {at}/cert.pem\n\
         server_tls_sslmode = verify-full\nserver_tls_ca_file = {at}/ca.pem\n{general}\n"
    );
    std::fs::write(&path, text).unwrap();
    let context = load(&load_settings(&path).unwrap(), &TlsContext::default()).unwrap();
    (context.clients.unwrap(), context.servers.unwrap())
}

pub(crate) fn peer() -> SocketAddr {
    "127.0.0.1:5432".parse().unwrap()
}

fn ends(general: &str) -> (TlsSession, TlsSession) {
    let (clients, servers) = context(general);
    (servers.connect("localhost", peer()).unwrap(), clients.accept(false).unwrap())
}

/// Gives `bytes` to a session in pieces; what it decrypts and what it answers.
fn feed(session: &mut TlsSession, bytes: &[u8], piece: usize) -> Result<(Vec<u8>, Vec<u8>), TlsError> {
    let (mut plain, mut out) = (Vec::new(), Vec::new());
    let mut buffer = vec![0; MAX_PENDING_BYTES + piece];
    for piece in bytes.chunks(piece) {
        let pending = session.take_pending(&mut buffer);
        buffer[pending..pending + piece.len()].copy_from_slice(piece);
        session.process(&mut buffer[..pending + piece.len()], &mut plain, &mut out)?;
    }
    Ok((plain, out))
}

/// Runs the handshake with each flight cut into pieces.
fn shake(client: &mut TlsSession, server: &mut TlsSession, piece: usize) {
    let mut to_server = Vec::new();
    client.process(&mut [], &mut Vec::new(), &mut to_server).unwrap();
    while client.is_handshaking() || server.is_handshaking() || !to_server.is_empty() {
        let (_, to_client) = feed(server, &to_server, piece).unwrap();
        (_, to_server) = feed(client, &to_client, piece).unwrap();
    }
}

#[test]
fn a_handshake_works_however_its_bytes_are_cut() {
    for general in ["", "client_tls_protocols = tlsv1.2"] {
        for piece in [1, 7, 1000, 100_000] {
            let (mut client, mut server) = ends(general);
            shake(&mut client, &mut server, piece);
            assert!(client.pending.is_empty() && server.pending.is_empty());
            let version = if general.is_empty() {
                "TLSv1.3/TLS_AES_256_GCM_SHA384"
            } else {
                "TLSv1.2/ECDHE-ECDSA-AES256-GCM-SHA384/ECDH=X25519"
            };
            assert_eq!((client.describe().as_str(), server.describe().as_str()), (version, version));
        }
    }
}

#[test]
fn data_arrives_whole_and_nothing_stays_behind_it() {
    let (mut client, mut server) = ends("");
    shake(&mut client, &mut server, 100_000);
    let data: Vec<u8> = (0..100_000_u32).map(|index| (index % 251) as u8).collect();
    let mut sealed = Vec::new();
    client.encrypt(&data, &mut sealed).unwrap();
    for piece in [1, 5, 16_000, 200_000] {
        if piece != 1 {
            sealed.clear();
            client.encrypt(&data, &mut sealed).unwrap();
        }
        let (plain, _) = feed(&mut server, &sealed, piece).unwrap();
        assert!(plain == data, "in pieces of {piece}");
        assert_eq!(server.pending.capacity(), 0, "an idle connection owns no buffer");
    }
}

#[test]
fn what_fits_into_a_record_is_one_record() {
    let (mut client, mut server) = ends("");
    shake(&mut client, &mut server, 100_000);
    for (length, records) in [(1, 1), (RECORD_BYTES, 1), (RECORD_BYTES + 1, 2)] {
        let mut sealed = Vec::new();
        client.encrypt(&vec![7; length], &mut sealed).unwrap();
        let mut rest = &sealed[..];
        let mut count = 0;
        while let Some((header, body)) = rest.split_first_chunk::<5>() {
            rest = &body[usize::from(u16::from_be_bytes([header[3], header[4]]))..];
            count += 1;
        }
        assert_eq!(count, records, "{length} bytes");
    }
}

#[test]
fn an_end_in_good_order_is_told_from_what_stood_before_it() {
    let (mut client, mut server) = ends("");
    shake(&mut client, &mut server, 100_000);
    let mut sealed = Vec::new();
    client.encrypt(b"last words", &mut sealed).unwrap();
    client.close_notify(&mut sealed).unwrap();
    client.close_notify(&mut sealed).unwrap();
    let (plain, _) = feed(&mut server, &sealed, 100_000).unwrap();
    assert_eq!(plain, b"last words");
    assert!(server.peer_closed());
}

#[test]
fn a_forged_byte_ends_the_connection_with_an_alert() {
    let (mut client, mut server) = ends("");
    shake(&mut client, &mut server, 100_000);
    let mut sealed = Vec::new();
    client.encrypt(b"select 1", &mut sealed).unwrap();
    *sealed.last_mut().unwrap() ^= 1;
    let (mut plain, mut out) = (Vec::new(), Vec::new());
    assert!(server.process(&mut sealed, &mut plain, &mut out).is_err());
    assert!(plain.is_empty() && !out.is_empty());
    assert!(server.encrypt(b"more", &mut out).is_err(), "it cannot go on");
}

#[test]
fn no_peer_makes_a_connection_hold_more_than_the_bound() {
    let (_, mut server) = ends("");
    // A ClientHello of 60,000 bytes in records of 1,000, which never ends.
    let mut record = vec![0x16, 3, 1, 0x03, 0xe8];
    record.extend_from_slice(&[1, 0, 0xea, 0x60]);
    record.resize(5 + 1000, 0);
    let mut continued = vec![0x16, 3, 1, 0x03, 0xe8];
    continued.resize(5 + 1000, 0);
    let mut result = feed(&mut server, &record, 100_000).map(drop);
    for _ in 0..70 {
        result = result.and_then(|()| feed(&mut server, &continued, 100_000).map(drop));
        assert!(server.pending.len() <= MAX_PENDING_BYTES);
    }
    assert!(matches!(result, Err(TlsError::TooLong)), "{result:?}");
}

#[test]
fn direct_tls_must_name_the_protocol() {
    let (clients, servers) = context("");
    let mut client = servers.connect("localhost", peer()).unwrap();
    let mut server = clients.accept(true).unwrap();
    let mut hello = Vec::new();
    client.process(&mut [], &mut Vec::new(), &mut hello).unwrap();
    let (_, flight) = feed(&mut server, &hello, 100_000).unwrap();
    let (_, last) = feed(&mut client, &flight, 100_000).unwrap();
    assert!(matches!(feed(&mut server, &last, 100_000), Err(TlsError::NoAlpn)));
}

#[test]
fn a_client_of_another_protocol_is_told_so_by_an_alert() {
    let (clients, _) = context("");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = builder.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let mut client = TlsSession::connect(Arc::new(config), "localhost".try_into().unwrap()).unwrap();
    let mut hello = Vec::new();
    client.process(&mut [], &mut Vec::new(), &mut hello).unwrap();
    let (mut plain, mut out) = (Vec::new(), Vec::new());
    let mut server = clients.accept(false).unwrap();
    assert!(server.process(&mut hello, &mut plain, &mut out).is_err());
    let told = client.process(&mut out, &mut plain, &mut Vec::new()).unwrap_err().to_string();
    assert!(told.contains("NoApplicationProtocol"), "{told}");
}
