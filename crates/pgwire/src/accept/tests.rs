use super::*;
use crate::connect::{ServerLogin, ServerSecret, ServerStep, StartupRequest};
use crate::message::{ErrorFields, frontend};
use crate::scram::{self, ScramError};
use crate::secret::Password;

const USER: &str = "ada";
const RANDOM: &[u8; 32] = &[2; 32];

fn mock() -> MockSecret {
    MockSecret::new([9; 32], 3)
}

fn plain(password: &str) -> LoginSecret {
    LoginSecret::Plain(Password::new(password))
}

fn md5(password: &str) -> LoginSecret {
    LoginSecret::Md5(Md5Secret::derive(password.as_bytes(), USER))
}

fn scram(password: &str) -> LoginSecret {
    LoginSecret::Scram(Arc::new(Verifier::derive(password.as_bytes(), b"salt", 3).unwrap()))
}

fn start(method: Method, secret: Option<LoginSecret>) -> Step {
    ClientLogin::start(method, USER, secret, &mock(), None, RANDOM)
}

/// Messages in `bytes`: tag and body of each.
fn messages(mut bytes: &[u8]) -> Vec<(u8, &[u8])> {
    let mut found = Vec::new();
    while let Some((&tag, rest)) = bytes.split_first() {
        let length = u32::from_be_bytes(rest[..4].try_into().unwrap()) as usize;
        found.push((tag, &rest[4..length]));
        bytes = &rest[length..];
    }
    found
}

/// Runs our own client against the login; `Ok` when both sides say so.
fn log_in(mut step: Step, secret: Option<ServerSecret>) -> Result<Option<ScramKeys>, LoginError> {
    let request = StartupRequest { user: USER.to_owned(), database: "shop".to_owned(), parameters: vec![] };
    let (mut client, _) = ServerLogin::start(&request, secret).unwrap();
    loop {
        let (send, after) = match step {
            Step::Continue { login, send } => (send, Ok(login)),
            Step::Accepted { send, keys } => (send, Err(keys)),
            Step::Refused(error) => return Err(error),
        };
        let mut reply = Vec::new();
        for (tag, body) in messages(&send) {
            let ServerStep::Continue { login, send } = client.on_message(tag, body, &[1; 32]).unwrap() else {
                panic!("ready without ReadyForQuery")
            };
            client = login;
            reply.extend(send);
        }
        match after {
            Ok(login) => {
                let (tag, body) = messages(&reply)[0];
                step = login.on_message(tag, body);
            }
            Err(keys) => return Ok(keys),
        }
    }
}

fn with_password(password: &str) -> Option<ServerSecret> {
    Some(ServerSecret::Plain(Password::new(password)))
}

/// Every method with every stored secret it works with.
fn pairs(password: &str) -> Vec<(Method, LoginSecret)> {
    let [plain, md5, scram] = [plain(password), md5(password), scram(password)];
    vec![
        (Method::Plain, plain.clone()),
        (Method::Plain, md5.clone()),
        (Method::Plain, scram.clone()),
        (Method::Md5, plain),
        (Method::Md5, md5),
        (Method::Md5, scram.clone()),
        (Method::Scram, scram),
    ]
}

#[test]
fn the_right_password_logs_in_by_every_method_and_a_wrong_one_by_none() {
    for password in ["pencil", "p\u{e4}ss wort", "\u{1f511}"] {
        for (method, secret) in pairs(password) {
            let right = log_in(start(method, Some(secret.clone())), with_password(password));
            assert!(right.is_ok(), "{method:?} {secret:?}: {right:?}");
            let wrong = log_in(start(method, Some(secret.clone())), with_password("wrong")).unwrap_err();
            assert_eq!(wrong, LoginError::WrongPassword { user: USER.to_owned() }, "{method:?} {secret:?}");
        }
    }
}

#[test]
fn secrets_of_every_length_up_to_the_limit_work_whole() {
    for length in [64, 255, 256, 1023, 1024, 4096, 65_000, 65_535] {
        let password = "x".repeat(length);
        let one_less = "x".repeat(length - 1);
        for (method, secret) in pairs(&password) {
            log_in(start(method, Some(secret.clone())), with_password(&password)).unwrap();
            assert!(
                log_in(start(method, Some(secret)), with_password(&one_less)).is_err(),
                "{method:?} {length}"
            );
        }
    }
}

#[test]
fn a_message_longer_than_any_password_is_refused_at_the_bound() {
    let body = |length: usize| [&vec![b'x'; length - 1][..], b"\0"].concat();
    for (length, refused) in [(MAX_LOGIN_BODY_BYTES, false), (MAX_LOGIN_BODY_BYTES + 1, true)] {
        let Step::Continue { login, .. } = start(Method::Plain, Some(plain("pencil"))) else { panic!() };
        let Step::Refused(error) = login.on_message(b'p', &body(length)) else { panic!("let in") };
        assert_eq!(error == LoginError::TooLong { length }, refused, "{error}");
    }
}

#[test]
fn a_scram_login_gives_keys_that_log_in_at_a_server_with_the_same_verifier() {
    let keys = log_in(start(Method::Scram, Some(scram("pencil"))), with_password("pencil")).unwrap().unwrap();
    let through = ServerSecret::ScramKeys(keys.clone());
    log_in(start(Method::Scram, Some(scram("pencil"))), Some(through)).unwrap();
    let plain_over_verifier =
        log_in(start(Method::Plain, Some(scram("pencil"))), with_password("pencil")).unwrap();
    assert_eq!(plain_over_verifier, Some(keys));
}

#[test]
fn trust_accepts_at_once() {
    let Step::Accepted { send, keys } = start(Method::Trust, None) else { panic!("not accepted") };
    assert_eq!(send, b"R\0\0\0\x08\0\0\0\0");
    assert_eq!(keys, None);
}

#[test]
fn an_unknown_user_sees_what_a_wrong_password_shows() {
    for (method, known) in [(Method::Plain, plain("x")), (Method::Md5, md5("x")), (Method::Scram, scram("x"))]
    {
        let Step::Continue { send: unknown_is_asked, .. } = start(method, None) else { panic!() };
        let Step::Continue { send: known_is_asked, .. } = start(method, Some(known.clone())) else {
            panic!()
        };
        assert_eq!(unknown_is_asked, known_is_asked);
        let unknown = log_in(start(method, None), with_password("pencil")).unwrap_err();
        let wrong = log_in(start(method, Some(known)), with_password("pencil")).unwrap_err();
        assert_eq!(unknown.response(), wrong.response());
    }
}

#[test]
fn an_empty_password_never_logs_in() {
    for method in [Method::Plain, Method::Md5, Method::Scram] {
        let error = log_in(start(method, Some(plain(""))), with_password("")).unwrap_err();
        assert_eq!(error, LoginError::WrongPassword { user: USER.to_owned() }, "{method:?}");
        assert!(!needs_verifier(method, &plain("")));
    }
    let stored_empty = md5("");
    assert!(log_in(start(Method::Plain, Some(stored_empty)), with_password("")).is_err());
}

#[test]
fn scram_with_an_md5_secret_is_told_to_be_the_wrong_type() {
    let Step::Refused(error) = start(Method::Scram, Some(md5("pencil"))) else { panic!("not refused") };
    assert_eq!((error.client_text().as_str(), error.sqlstate()), ("wrong password type", "28P01"));
}

#[test]
fn scram_with_a_plain_password_wants_a_verifier_first() {
    assert!(needs_verifier(Method::Scram, &plain("pencil")));
    assert!(!needs_verifier(Method::Scram, &scram("pencil")));
    assert!(!needs_verifier(Method::Md5, &plain("pencil")));
    let Step::Refused(error) = start(Method::Scram, Some(plain("pencil"))) else { panic!("not refused") };
    assert_eq!(error, LoginError::VerifierMissing { user: USER.to_owned() });
}

#[test]
fn a_failure_is_told_in_the_words_of_postgresql() {
    let error = LoginError::WrongPassword { user: "k\u{f6}nig".to_owned() };
    let fields = ErrorFields::parse(&error.response()[5..]);
    assert_eq!(fields.to_string(), "FATAL 28P01: password authentication failed for user \"k\u{f6}nig\"");
}

#[test]
fn another_message_than_a_password_is_named() {
    for method in [Method::Plain, Method::Md5, Method::Scram] {
        let Step::Continue { login, .. } = start(method, None) else { panic!() };
        let Step::Refused(error) = login.on_message(b'X', b"") else { panic!("not refused") };
        assert_eq!(error.to_string(), "expected message 'p' during login, got 'X'");
        assert_eq!(error.sqlstate(), "08P01");
    }
}

#[test]
fn a_password_message_without_its_end_is_refused() {
    for body in [&b""[..], b"pencil", b"pencil\0\0", b"pen\0cil\0"] {
        for method in [Method::Plain, Method::Md5] {
            let Step::Continue { login, .. } = start(method, Some(plain("pencil"))) else { panic!() };
            assert!(matches!(login.on_message(b'p', body), Step::Refused(LoginError::Malformed(_))));
        }
    }
}

fn sasl_initial(mechanism: &str, data: &[u8]) -> Step {
    let Step::Continue { login, .. } = start(Method::Scram, Some(scram("pencil"))) else { panic!() };
    let mut message = Vec::new();
    frontend::sasl_initial_response(&mut message, mechanism, data);
    login.on_message(b'p', &message[5..])
}

#[test]
fn a_mechanism_that_was_not_offered_is_refused() {
    for mechanism in ["SCRAM-SHA-256-PLUS", "PLAIN", ""] {
        assert!(matches!(sasl_initial(mechanism, b"n,,n=,r=x"), Step::Refused(LoginError::Mechanism)));
    }
    let binding = sasl_initial("SCRAM-SHA-256", b"p=tls-server-end-point,,n=,r=x");
    assert!(matches!(binding, Step::Refused(LoginError::Scram(ScramError::ChannelBinding))));
    let long = sasl_initial("SCRAM-SHA-256", &vec![b'x'; scram::MAX_MESSAGE_BYTES + 1]);
    assert!(matches!(long, Step::Refused(LoginError::Scram(ScramError::TooLong))));
}

#[test]
fn channel_binding_is_offered_first_and_only_where_there_is_a_channel_to_bind() {
    let offered = |binding: Option<ChannelBinding>| {
        let step = ClientLogin::start(Method::Scram, USER, Some(scram("pencil")), &mock(), binding, RANDOM);
        let Step::Continue { login, send } = step else { panic!() };
        (login, send[9..].to_vec())
    };
    assert_eq!(offered(None).1, b"SCRAM-SHA-256\0\0");
    let binding = ChannelBinding::tls_server_end_point(&[7; 32]);
    let (login, mechanisms) = offered(Some(binding));
    assert_eq!(mechanisms, b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0");
    let message = b"SCRAM-SHA-256\0\0\0\0\x0by,,n=,r=abc";
    let Step::Refused(error) = login.on_message(b'p', message) else {
        panic!("a stripped offer went through")
    };
    assert_eq!(error.sqlstate(), "28000");
    let Step::Refused(error) = offered(None).0.on_message(b'p', b"SCRAM-SHA-256-PLUS\0\xff\xff\xff\xff")
    else {
        panic!("what was not offered was taken")
    };
    assert_eq!(error, LoginError::Mechanism);
}

#[test]
fn a_client_may_send_its_first_scram_message_late() {
    let Step::Continue { login, .. } = start(Method::Scram, Some(scram("pencil"))) else { panic!() };
    let Step::Continue { login, send } = login.on_message(b'p', b"SCRAM-SHA-256\0\xff\xff\xff\xff") else {
        panic!()
    };
    assert_eq!(send, b"R\0\0\0\x08\0\0\0\x0b");
    let secret = scram::ClientSecret::Password(Password::new("pencil"));
    let (client, first) = scram::AwaitServerFirst::new(secret, &[1; 32]);
    let Step::Continue { login, send } = login.on_message(b'p', &first) else { panic!() };
    let (client, last) = client.answer(&send[9..]).unwrap();
    let Step::Accepted { send, .. } = login.on_message(b'p', &last) else { panic!() };
    client.verify(&messages(&send)[0].1[4..]).unwrap();
}

#[test]
fn the_kind_of_a_stored_secret_is_told_as_postgresql_does() {
    let verifier = Verifier::derive(b"pencil", b"salt", 3).unwrap();
    assert_eq!(LoginSecret::parse(&verifier.to_string()), LoginSecret::Scram(Arc::new(verifier)));
    let md5_text = "md57561d9278ce28197a2111de89346a5e5";
    assert_eq!(LoginSecret::parse(md5_text), LoginSecret::Md5(Md5Secret::parse(md5_text).unwrap()));
    for text in ["pencil", "md5pencil", "SCRAM-SHA-256$broken", ""] {
        assert_eq!(LoginSecret::parse(text), plain(text));
    }
}

#[test]
fn no_secret_is_shown_by_debug() {
    for (method, secret) in pairs("pencil") {
        let shown = format!("{:?} {secret:?}", start(method, Some(secret.clone())));
        assert!(!shown.contains("pencil") && !shown.contains("7561d9"), "{shown}");
    }
}
