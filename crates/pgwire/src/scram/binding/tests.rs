//! Our server against an independent client.

use super::super::{AwaitClientFirst, Verified, Verifier};
use super::*;
use postgres_protocol::authentication::sasl::{ChannelBinding as TheirBinding, ScramSha256};

fn server(offered: Option<&[u8]>) -> AwaitClientFirst {
    let verifier = Arc::new(Verifier::derive(b"pencil", b"salt", 3).unwrap());
    AwaitClientFirst::new(verifier, &[2; 32]).offering(offered.map(ChannelBinding::tls_server_end_point))
}

fn bound_login(client_sees: &[u8], server_has: &[u8]) -> Result<Verified, ScramError> {
    let binding = TheirBinding::tls_server_end_point(client_sees.to_vec());
    let mut client = ScramSha256::new(b"pencil", binding);
    let server = server(Some(server_has)).answer_bound(client.message())?;
    client.update(server.server_first()).unwrap();
    let verified = server.finish(client.message())?;
    client.finish(&verified.server_final).unwrap();
    Ok(verified)
}

#[test]
fn a_client_that_sees_our_certificate_logs_in_and_one_that_sees_another_does_not() {
    assert!(bound_login(&[7; 32], &[7; 32]).is_ok());
    assert!(bound_login(&[7; 48], &[7; 48]).is_ok());
    assert_eq!(bound_login(&[8; 32], &[7; 32]).unwrap_err(), ScramError::ChannelBindingMismatch);
}

#[test]
fn a_client_that_was_told_nothing_of_our_binding_is_refused() {
    let client = ScramSha256::new(b"pencil", TheirBinding::unrequested());
    assert_eq!(
        server(Some(&[7; 32])).answer(client.message()).map(drop),
        Err(ScramError::ChannelBindingStripped)
    );
    assert!(server(None).answer(client.message()).is_ok(), "without TLS it is told the truth");
}

#[test]
fn the_flag_must_fit_the_chosen_mechanism_and_the_type_must_be_known() {
    let answer = |message: &[u8], bound: bool| {
        let server = server(Some(&[7; 32]));
        if bound { server.answer_bound(message).map(drop) } else { server.answer(message).map(drop) }
    };
    assert_eq!(answer(b"n,,n=,r=abc", false), Ok(()), "a client may do without");
    assert_eq!(answer(b"p=tls-server-end-point,,n=,r=abc", true), Ok(()));
    assert!(matches!(answer(b"n,,n=,r=abc", true), Err(ScramError::Malformed(_))));
    assert!(matches!(answer(b"p=tls-server-end-point,,n=,r=abc", false), Err(ScramError::Malformed(_))));
    assert_eq!(answer(b"p=tls-unique,,n=,r=abc", true), Err(ScramError::ChannelBindingType));
}
