use crate::fixtures::Configs;
use crate::session::TlsSession;
use rustls::{ClientConnection, ServerConnection};
use std::sync::Arc;

/// Runs both ends, one of ours and one of rustls' own, until the handshake is done; both exports.
fn exports(client_exports: bool) -> (Option<[u8; 32]>, [u8; 32]) {
    let configs = if client_exports { Configs::exporting() } else { Configs::new(&rustls::version::TLS13) };
    let mut ours = TlsSession::connect(Arc::clone(&configs.client), "localhost".try_into().unwrap()).unwrap();
    let mut theirs = ServerConnection::new(Arc::clone(&configs.server)).unwrap();
    let (mut plain, mut out) = (Vec::new(), Vec::new());
    ours.process(&mut [], &mut plain, &mut out).unwrap();
    for _ in 0..4 {
        theirs.read_tls(&mut &out[..]).unwrap();
        theirs.process_new_packets().unwrap();
        out.clear();
        let mut answer = ours.pending();
        while theirs.wants_write() {
            theirs.write_tls(&mut answer).unwrap();
        }
        ours.process(&mut answer, &mut plain, &mut out).unwrap();
    }
    assert!(!theirs.is_handshaking() && !ours.is_handshaking());
    let exported = theirs.export_keying_material([0; 32], b"EXPORTER-test", Some(b"")).unwrap();
    (ours.export(b"EXPORTER-test"), exported)
}

#[test]
fn what_is_exported_is_what_rustls_exports_at_the_other_end() {
    let (ours, theirs) = exports(true);
    assert_eq!(ours, Some(theirs));
}

#[test]
fn nothing_is_exported_where_it_was_not_asked_for() {
    assert_eq!(exports(false).0, None);
}

#[test]
fn a_server_of_ours_exports_the_same_and_each_connection_something_else() {
    let configs = Configs::exporting();
    let mut seen = Vec::new();
    for _ in 0..2 {
        let mut theirs =
            ClientConnection::new(Arc::clone(&configs.client), "localhost".try_into().unwrap()).unwrap();
        let mut ours = TlsSession::accept(Arc::clone(&configs.server), false).unwrap();
        let mut plain = Vec::new();
        for _ in 0..4 {
            let mut incoming = ours.pending();
            while theirs.wants_write() {
                theirs.write_tls(&mut incoming).unwrap();
            }
            let mut out = Vec::new();
            ours.process(&mut incoming, &mut plain, &mut out).unwrap();
            theirs.read_tls(&mut &out[..]).unwrap();
            theirs.process_new_packets().unwrap();
        }
        let exported = ours.export(b"EXPORTER-test").unwrap();
        assert_eq!(exported, theirs.export_keying_material([0; 32], b"EXPORTER-test", Some(b"")).unwrap());
        assert_ne!(ours.export(b"EXPORTER-other"), Some(exported));
        seen.push(exported);
    }
    assert_ne!(seen[0], seen[1]);
}
