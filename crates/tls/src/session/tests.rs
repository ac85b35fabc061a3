//! Our two ends against each other, with every way in which bytes may be cut.

use super::*;
use crate::fixtures::Configs;
use rustls::SupportedProtocolVersion;
use rustls::version::{TLS12, TLS13};

fn ends(version: &'static SupportedProtocolVersion) -> (TlsSession, TlsSession) {
    Configs::new(version).ends(false)
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
    for version in [&TLS12, &TLS13] {
        for piece in [1, 7, 1000, 100_000] {
            let (mut client, mut server) = ends(version);
            shake(&mut client, &mut server, piece);
            assert!(client.pending.is_empty() && server.pending.is_empty());
            assert_eq!(client.agreed().map(|agreed| agreed.0), Some(version.version));
            assert_eq!(client.agreed(), server.agreed());
        }
    }
}

#[test]
fn data_arrives_whole_and_nothing_stays_behind_it() {
    let (mut client, mut server) = ends(&TLS13);
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
    let (mut client, mut server) = ends(&TLS13);
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
    let (mut client, mut server) = ends(&TLS13);
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
    let (mut client, mut server) = ends(&TLS13);
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
    let (_, mut server) = ends(&TLS13);
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
fn a_protocol_must_be_named_where_it_is_required() {
    let (mut client, mut server) = Configs::naming(None, b"holdfast/1").ends(true);
    let mut hello = Vec::new();
    client.process(&mut [], &mut Vec::new(), &mut hello).unwrap();
    let (_, flight) = feed(&mut server, &hello, 100_000).unwrap();
    let (_, last) = feed(&mut client, &flight, 100_000).unwrap();
    assert!(matches!(feed(&mut server, &last, 100_000), Err(TlsError::NoAlpn)));
}

#[test]
fn a_client_of_another_protocol_is_told_so_by_an_alert() {
    let (mut client, mut server) = Configs::naming(Some(b"h2"), b"holdfast/1").ends(false);
    let (mut plain, mut hello, mut out) = (Vec::new(), Vec::new(), Vec::new());
    client.process(&mut [], &mut plain, &mut hello).unwrap();
    assert!(server.process(&mut hello, &mut plain, &mut out).is_err());
    let told = client.process(&mut out, &mut plain, &mut Vec::new()).unwrap_err().to_string();
    assert!(told.contains("NoApplicationProtocol"), "{told}");
}

/// The certificate's message is refused with others behind it in the same record; that once was a panic.
#[test]
fn a_server_whose_certificate_is_refused_is_told_so_by_an_alert() {
    for version in [&TLS13, &TLS12] {
        for piece in [1, 100, 100_000] {
            let name = "localhost".try_into().unwrap();
            let mut client = TlsSession::connect(Configs::new(version).client, name).unwrap();
            let (_, mut server) = ends(version);
            let mut hello = Vec::new();
            client.process(&mut [], &mut Vec::new(), &mut hello).unwrap();
            let (_, mut flight) = feed(&mut server, &hello, 100_000).unwrap();
            let mut alert = Vec::new();
            let refused = flight.chunks_mut(piece).find_map(|piece| {
                let mut buffer = vec![0; MAX_PENDING_BYTES + piece.len()];
                let pending = client.take_pending(&mut buffer);
                buffer[pending..pending + piece.len()].copy_from_slice(piece);
                client.process(&mut buffer[..pending + piece.len()], &mut Vec::new(), &mut alert).err()
            });
            assert!(refused.unwrap().to_string().contains("invalid peer certificate"));
            assert!(feed(&mut server, &alert, 100_000).unwrap_err().to_string().contains("alert"));
        }
    }
}
