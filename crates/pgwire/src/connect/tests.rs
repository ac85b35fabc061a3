use super::*;
use crate::message::{Severity, backend, error_response};
use crate::scram::{AwaitClientFirst, ScramError, Verifier};
use std::sync::Arc;

const RANDOM: &[u8; 32] = &[1; 32];

fn begin(secret: Option<ServerSecret>) -> ServerLogin {
    let request = StartupRequest {
        user: "ada".to_owned(),
        database: "shop".to_owned(),
        parameters: vec![("application_name".to_owned(), "x".to_owned())],
    };
    ServerLogin::start(&request, secret).unwrap().0
}

fn plain(password: &[u8]) -> Option<ServerSecret> {
    Some(ServerSecret::Plain(Password::new(password)))
}

fn keys() -> Option<ServerSecret> {
    Some(ServerSecret::ScramKeys(ScramKeys::derive(b"pencil", b"salt", 3).unwrap()))
}

fn md5() -> Option<ServerSecret> {
    Some(ServerSecret::Md5(Md5Secret::derive(b"pencil", "ada")))
}

/// Gives one whole message of the server to the login.
fn give(login: ServerLogin, message: &[u8]) -> Result<ServerStep, ServerLoginError> {
    login.on_message(message[0], &message[5..], RANDOM)
}

fn built(build: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    build(&mut out);
    out
}

/// The login goes on; gives it and what it sends.
fn go_on(login: ServerLogin, message: &[u8]) -> (ServerLogin, Vec<u8>) {
    match give(login, message) {
        Ok(ServerStep::Continue { login, send }) => (login, send),
        other => panic!("expected to go on: {other:?}"),
    }
}

fn ok() -> Vec<u8> {
    built(backend::authentication_ok)
}

fn sasl() -> Vec<u8> {
    built(|out| backend::authentication_sasl(out, &["SCRAM-SHA-256-PLUS", "SCRAM-SHA-256"]))
}

fn ready() -> Vec<u8> {
    built(|out| backend::ready_for_query(out, TransactionStatus::Idle))
}

#[test]
fn the_start_up_message_asks_for_user_database_and_parameters() {
    let request = StartupRequest {
        user: "ada".to_owned(),
        database: "shop".to_owned(),
        parameters: vec![("options".to_owned(), "-c a=b".to_owned())],
    };
    let (_, send) = ServerLogin::start(&request, None).unwrap();
    assert_eq!(send, b"\0\0\0\x2f\0\x03\0\0user\0ada\0database\0shop\0options\0-c a=b\0\0");
    let impossible = StartupRequest { user: "a\0b".to_owned(), ..request };
    assert!(matches!(ServerLogin::start(&impossible, None), Err(ServerLoginError::Startup(_))));
}

#[test]
fn a_session_comes_with_its_key_and_the_last_value_of_each_parameter() {
    let (mut login, send) = go_on(begin(None), &ok());
    assert!(send.is_empty());
    for (name, value) in [("TimeZone", "UTC"), ("server_version", "15.1"), ("TimeZone", "Europe/Berlin")] {
        login = go_on(login, &built(|out| backend::parameter_status(out, name, value))).0;
    }
    let key = CancelKey { process_id: 77, secret: crate::SecretKey::new(&[8; 256]).unwrap() };
    login = go_on(login, &built(|out| backend::backend_key_data(out, &key))).0;
    let Ok(ServerStep::Ready(session)) = give(login, &ready()) else { panic!("not ready") };
    let expected = [("TimeZone", "Europe/Berlin"), ("server_version", "15.1")];
    assert_eq!(session.parameters, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!((session.cancel_key, session.transaction_status), (Some(key), TransactionStatus::Idle));
}

#[test]
fn a_server_that_gives_no_key_is_still_used() {
    let (login, _) = go_on(begin(None), &ok());
    let Ok(ServerStep::Ready(session)) = give(login, &ready()) else { panic!("not ready") };
    assert_eq!(session.cancel_key, None);
}

#[test]
fn notices_and_negotiation_do_not_disturb_a_login() {
    let notice = built(|out| ErrorFields::new(Severity::Notice, "00000", "hello").write_notice(out));
    let negotiate = built(|out| backend::negotiate_protocol_version(out, 0, &["_pq_.x"]));
    let (login, _) = go_on(begin(None), &notice);
    let (login, _) = go_on(login, &negotiate);
    let (login, _) = go_on(login, &ok());
    let (login, _) = go_on(login, &notice);
    assert!(matches!(give(login, &ready()), Ok(ServerStep::Ready(_))));
}

#[test]
fn the_error_of_the_server_is_kept_before_and_after_authentication() {
    let error =
        error_response(Severity::Fatal, "3D000", "database \"shop\" does not exist", None, Some("make it"));
    for login in [begin(None), go_on(begin(None), &ok()).0] {
        let Err(ServerLoginError::Refused(fields)) = give(login, &error) else { panic!("not refused") };
        assert_eq!(fields.to_string(), "FATAL 3D000: database \"shop\" does not exist");
        assert_eq!(fields.hint.as_deref(), Some("make it"));
    }
}

#[test]
fn an_unsuitable_secret_is_named_with_what_is_missing() {
    let cleartext = built(backend::authentication_cleartext_password);
    let ask_md5 = built(|out| backend::authentication_md5_password(out, *b"salt"));
    let sasl = sasl();
    let zero = plain(b"a\0b");
    for (secret, request, text) in [
        (None, &cleartext, "password, which needs the plain password; given was nothing"),
        (md5(), &cleartext, "password, which needs the plain password; given was an MD5 secret"),
        (keys(), &cleartext, "password, which needs the plain password; given was SCRAM keys"),
        (zero, &cleartext, "password, which needs the plain password; given was a password with a zero byte"),
        (keys(), &ask_md5, "md5, which needs the plain password or its MD5 secret; given was SCRAM keys"),
        (None, &ask_md5, "md5, which needs the plain password or its MD5 secret; given was nothing"),
        (
            md5(),
            &sasl,
            "scram-sha-256, which needs the plain password or the SCRAM keys of the client's own login; \
             given was an MD5 secret",
        ),
    ] {
        let error = give(begin(secret), request).unwrap_err().to_string();
        assert_eq!(error, format!("server asks user \"ada\" for {text}"));
    }
}

#[test]
fn methods_and_mechanisms_not_spoken_are_named() {
    let gss = b"R\0\0\0\x08\0\0\0\x07";
    assert_eq!(give(begin(None), gss).unwrap_err(), ServerLoginError::Unsupported { kind: 7 });
    let only_plus = built(|out| backend::authentication_sasl(out, &["SCRAM-SHA-256-PLUS", "OAUTHBEARER"]));
    let error = give(begin(plain(b"pencil")), &only_plus).unwrap_err();
    assert_eq!(error, ServerLoginError::Mechanism { offered: "SCRAM-SHA-256-PLUS OAUTHBEARER".to_owned() });
}

#[test]
fn a_server_cannot_skip_its_own_proof() {
    let (login, send) = go_on(begin(keys()), &sasl());
    let error = give(begin_again(&send), &ok()).unwrap_err();
    assert_eq!(error, ServerLoginError::Unproven);

    let verifier = Arc::new(Verifier::derive(b"pencil", b"salt", 3).unwrap());
    let first = &send[5 + "SCRAM-SHA-256\0".len() + 4..];
    let server = AwaitClientFirst::new(verifier, &[2; 32]).answer(first).unwrap();
    let challenge = built(|out| backend::authentication_sasl_continue(out, server.server_first()));
    let (login, proof) = go_on(login, &challenge);
    let verified = server.finish(&proof[5..]).unwrap();

    let forged =
        built(|out| backend::authentication_sasl_final(out, &[b"v=", &[b'A'; 43][..], b"="].concat()));
    let (other, _) = go_on(begin_again(&send), &challenge);
    assert_eq!(give(other, &forged).unwrap_err(), ServerLoginError::Scram(ScramError::ServerSignature));
    let (other, _) = go_on(begin_again(&send), &challenge);
    assert_eq!(give(other, &ok()).unwrap_err(), ServerLoginError::Unproven);

    let honest = built(|out| backend::authentication_sasl_final(out, &verified.server_final));
    let (login, _) = go_on(login, &honest);
    go_on(login, &ok());
}

/// The same login once more; the randomness is fixed, so it sends the same.
fn begin_again(sent: &[u8]) -> ServerLogin {
    let (login, send) = go_on(begin(keys()), &sasl());
    assert_eq!(send, sent);
    login
}

#[test]
fn requests_out_of_order_are_refused() {
    let cleartext = built(backend::authentication_cleartext_password);
    let (login, _) = go_on(begin(plain(b"pencil")), &cleartext);
    assert_eq!(give(login, &cleartext).unwrap_err(), ServerLoginError::OutOfOrder, "asked twice");
    let last = built(|out| backend::authentication_sasl_final(out, b"v="));
    assert_eq!(give(begin(plain(b"pencil")), &last).unwrap_err(), ServerLoginError::OutOfOrder);
    let early = built(|out| backend::parameter_status(out, "a", "b"));
    assert!(matches!(give(begin(None), &early), Err(ServerLoginError::UnexpectedMessage { got: b'S', .. })));
    assert!(matches!(
        give(begin(None), &ready()),
        Err(ServerLoginError::UnexpectedMessage { got: b'Z', .. })
    ));
    let (login, _) = go_on(begin(None), &ok());
    let error = give(login, &ok()).unwrap_err().to_string();
    assert_eq!(
        error,
        "expected parameters, a key or ReadyForQuery from the server during login, got message 'R'"
    );
}

#[test]
fn a_server_cannot_fill_memory_with_parameters() {
    let report = |login, name: &str, value: &str| {
        give(login, &built(|out| backend::parameter_status(out, name, value)))
    };
    let (mut login, _) = go_on(begin(None), &ok());
    for number in 0..MAX_SERVER_PARAMETERS {
        let Ok(ServerStep::Continue { login: next, .. }) = report(login, &format!("p{number}"), "x") else {
            panic!("refused at {number}")
        };
        login = next;
    }
    assert_eq!(report(login, "one more", "x").unwrap_err(), ServerLoginError::TooManyParameters);

    let half = "x".repeat(MAX_SERVER_PARAMETER_BYTES / 2);
    let (login, _) = go_on(begin(None), &ok());
    let Ok(ServerStep::Continue { mut login, .. }) = report(login, "a", &half) else { panic!("refused") };
    for _ in 0..3 {
        let Ok(ServerStep::Continue { login: next, .. }) = report(login, "a", &half) else {
            panic!("the same one again is no more")
        };
        login = next;
    }
    assert_eq!(report(login, "b", &half).unwrap_err(), ServerLoginError::TooManyParameters);
}

#[test]
fn a_login_that_never_ends_is_given_up() {
    let notice = built(|out| ErrorFields::new(Severity::Notice, "00000", "still here").write_notice(out));
    let mut login = begin(None);
    for _ in 0..MAX_LOGIN_MESSAGES {
        login = go_on(login, &notice).0;
    }
    assert_eq!(give(login, &notice).unwrap_err(), ServerLoginError::TooManyMessages);
}

#[test]
fn a_message_that_is_too_long_is_refused_at_the_bound() {
    let body = vec![0; MAX_LOGIN_BODY_BYTES + 1];
    assert!(begin(None).on_message(b'N', &body[..MAX_LOGIN_BODY_BYTES], RANDOM).is_ok());
    let error = begin(None).on_message(b'N', &body, RANDOM).unwrap_err();
    assert_eq!(error, ServerLoginError::TooLong { length: MAX_LOGIN_BODY_BYTES + 1 });
}

#[test]
fn no_secret_is_shown_by_debug() {
    for secret in [plain(b"pencil"), md5(), keys()] {
        let shown = format!("{:?}", begin(secret));
        assert!(shown.contains("hidden") && !shown.contains("pencil"), "{shown}");
    }
}
