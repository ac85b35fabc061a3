use bytes::BytesMut;
use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend as other;
use proptest::prelude::*;

use super::backend::{Column, oid};
use super::parse::{Authentication, MalformedMessage};
use super::*;
use crate::secret::{CancelKey, SecretKey};

fn built(build: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    // Something is there already: builders append.
    let mut out = b"before".to_vec();
    build(&mut out);
    assert_eq!(&out[..6], b"before");
    out.split_off(6)
}

/// The body of one whole message with this tag.
fn body_of(tag: u8, message: &[u8]) -> &[u8] {
    assert_eq!(message[0], tag);
    assert_eq!(u32::from_be_bytes(message[1..5].try_into().unwrap()) as usize, message.len() - 1);
    &message[5..]
}

fn theirs(build: impl FnOnce(&mut BytesMut)) -> BytesMut {
    let mut out = BytesMut::new();
    build(&mut out);
    out
}

fn read_by_another_library(message: &[u8]) -> Message {
    Message::parse(&mut BytesMut::from(message)).unwrap().unwrap()
}

#[test]
fn client_messages_are_those_of_another_library() {
    assert_eq!(
        built(|out| frontend::query(out, "select 1")),
        theirs(|out| other::query("select 1", out).unwrap())
    );
    assert_eq!(built(frontend::sync), theirs(other::sync));
    assert_eq!(built(|out| frontend::execute(out, "p")), theirs(|out| other::execute("p", 0, out).unwrap()));
    assert_eq!(built(frontend::terminate), theirs(other::terminate));
    assert_eq!(
        built(|out| frontend::copy_fail(out, "gone")),
        theirs(|out| other::copy_fail("gone", out).unwrap())
    );
    let password = theirs(|out| other::password_message(b"secret", out).unwrap());
    assert_eq!(built(|out| frontend::password(out, b"secret")), password);
    let initial = theirs(|out| other::sasl_initial_response("SCRAM-SHA-256", b"n,,", out).unwrap());
    assert_eq!(built(|out| frontend::sasl_initial_response(out, "SCRAM-SHA-256", b"n,,")), initial);
    let response = theirs(|out| other::sasl_response(b"c=biws", out).unwrap());
    assert_eq!(built(|out| frontend::sasl_response(out, b"c=biws")), response);
}

#[test]
fn a_result_is_laid_out_as_the_manual_says() {
    let columns = [Column { name: "n", type_oid: oid::INT8 }, Column { name: "t", type_oid: oid::TEXT }];
    let expected = b"T\0\0\0\x2e\0\x02n\0\0\0\0\0\0\0\0\0\0\x14\0\x08\xff\xff\xff\xff\0\0\
                     t\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0";
    assert_eq!(built(|out| backend::row_description(out, &columns)), expected);
    let row = built(|out| backend::data_row(out, [Some("42"), None, Some("")]));
    assert_eq!(row, b"D\0\0\0\x14\0\x03\0\0\0\x0242\xff\xff\xff\xff\0\0\0\0");
    assert_eq!(built(|out| backend::command_complete(out, "SELECT 1")), b"C\0\0\0\x0dSELECT 1\0");
    assert_eq!(built(backend::empty_query_response), b"I\0\0\0\x04");
}

#[test]
fn a_row_of_too_many_columns_is_cut_at_the_limit_of_postgresql() {
    let row = built(|out| backend::data_row(out, std::iter::repeat_n(Some("x"), backend::MAX_COLUMNS + 1)));
    assert_eq!(body_of(b'D', &row).len(), 2 + 5 * backend::MAX_COLUMNS);
    assert_eq!(body_of(b'D', &row)[..2], 1664_u16.to_be_bytes());
    let columns = vec![Column { name: "x", type_oid: oid::TEXT }; backend::MAX_COLUMNS + 1];
    let description = built(|out| backend::row_description(out, &columns));
    assert_eq!(body_of(b'T', &description).len(), 2 + 20 * backend::MAX_COLUMNS);
}

#[test]
fn server_messages_are_understood_by_another_library() {
    let message = |build: &dyn Fn(&mut Vec<u8>)| read_by_another_library(&built(build));
    assert!(matches!(message(&backend::authentication_ok), Message::AuthenticationOk));
    assert!(matches!(
        message(&backend::authentication_cleartext_password),
        Message::AuthenticationCleartextPassword
    ));
    let Message::AuthenticationMd5Password(body) =
        message(&|out| backend::authentication_md5_password(out, *b"salt"))
    else {
        panic!("not md5")
    };
    assert_eq!(body.salt(), *b"salt");
    let key = CancelKey { process_id: 7, secret: SecretKey::from([0, 0, 1, 0]) };
    let Message::BackendKeyData(body) = message(&|out| backend::backend_key_data(out, &key)) else {
        panic!("no key")
    };
    assert_eq!((body.process_id(), body.secret_key()), (7, 256));
    let Message::ParameterStatus(body) = message(&|out| backend::parameter_status(out, "TimeZone", "UTC"))
    else {
        panic!("no parameter")
    };
    assert_eq!((body.name().unwrap(), body.value().unwrap()), ("TimeZone", "UTC"));
    let Message::ReadyForQuery(body) =
        message(&|out| backend::ready_for_query(out, TransactionStatus::Failed))
    else {
        panic!("not ready")
    };
    assert_eq!(body.status(), b'E');
    assert!(matches!(
        read_by_another_library(&error_response(Severity::Fatal, "28P01", "no", None, None)),
        Message::ErrorResponse(_)
    ));
}

#[test]
fn what_is_built_is_read_back() {
    let read = |build: &dyn Fn(&mut Vec<u8>), tag| body_of(tag, &built(build)).to_vec();
    let sasl = read(&|out| backend::authentication_sasl(out, &["A", "B"]), b'R');
    let Ok(Authentication::Sasl { mechanisms }) = parse::authentication(&sasl) else { panic!("no sasl") };
    assert_eq!(parse::sasl_mechanisms(mechanisms).collect::<Vec<_>>(), [b"A", b"B"]);
    let data = read(&|out| backend::authentication_sasl_continue(out, b"x"), b'R');
    assert_eq!(parse::authentication(&data), Ok(Authentication::SaslContinue { data: b"x" }));
    let data = read(&|out| backend::authentication_sasl_final(out, b"y"), b'R');
    assert_eq!(parse::authentication(&data), Ok(Authentication::SaslFinal { data: b"y" }));
    let key = CancelKey { process_id: -1, secret: SecretKey::new(&[9; 256]).unwrap() };
    let data = read(&|out| backend::backend_key_data(out, &key), b'K');
    assert_eq!(parse::backend_key_data(&data), Ok((-1, &[9; 256][..])));
    let data = read(&|out| backend::parameter_status(out, "a", ""), b'S');
    assert_eq!(parse::parameter_status(&data), Ok((&b"a"[..], &b""[..])));
    let data = read(&|out| backend::command_complete(out, "BEGIN"), b'C');
    assert_eq!(parse::command_complete(&data), Ok(&b"BEGIN"[..]));
    let data = read(&|out| frontend::query(out, "select 1"), b'Q');
    assert_eq!(parse::query(&data), Ok(&b"select 1"[..]));
    let data = read(&|out| frontend::sasl_initial_response(out, "M", b"n,,"), b'p');
    assert_eq!(parse::sasl_initial_response(&data), Ok((&b"M"[..], Some(&b"n,,"[..]))));
    for status in [TransactionStatus::Idle, TransactionStatus::InTransaction, TransactionStatus::Failed] {
        let data = read(&|out| backend::ready_for_query(out, status), b'Z');
        assert_eq!(parse::ready_for_query(&data), Ok(status));
    }
}

#[test]
fn a_negotiated_version_carries_the_major_version_as_libpq_expects() {
    let message = built(|out| backend::negotiate_protocol_version(out, 2, &["_pq_.a", "_pq_.b"]));
    assert_eq!(message, b"v\0\0\0\x1a\0\x03\0\x02\0\0\0\x02_pq_.a\0_pq_.b\0");
    let (minor, options) = parse::negotiate_protocol_version(&message[5..]).unwrap();
    assert_eq!((minor, options.collect::<Vec<_>>()), (2, vec![&b"_pq_.a"[..], b"_pq_.b"]));
    let (minor, _) = parse::negotiate_protocol_version(b"\0\0\0\x02\0\0\0\0").unwrap();
    assert_eq!(minor, 2, "a server that sends the minor version alone");
}

#[test]
fn bodies_of_the_wrong_shape_are_refused() {
    assert!(parse::authentication(b"").is_err());
    assert!(parse::authentication(b"\0\0\0\0x").is_err());
    assert!(parse::authentication(b"\0\0\0\x05sal").is_err());
    assert_eq!(parse::authentication(b"\0\0\0\x07"), Ok(Authentication::Other { kind: 7 }));
    assert!(parse::backend_key_data(&[0; 7]).is_err());
    assert!(parse::backend_key_data(&[0; 8]).is_ok());
    assert!(parse::backend_key_data(&[0; 4 + 256]).is_ok());
    assert!(parse::backend_key_data(&[0; 4 + 257]).is_err());
    assert!(parse::parameter_status(b"a\0b").is_err());
    assert!(parse::parameter_status(b"a\0b\0c").is_err());
    assert!(parse::ready_for_query(b"").is_err());
    assert!(parse::ready_for_query(b"II").is_err());
    assert!(parse::ready_for_query(b"X").is_err());
    assert!(parse::query(b"select 1").is_err());
    assert!(parse::query(b"select\0 1\0").is_err());
    assert!(parse::sasl_initial_response(b"M\0\0\0\0\x04n,,").is_err());
    assert_eq!(parse::sasl_initial_response(b"M\0\xff\xff\xff\xff"), Ok((&b"M"[..], None)));
    assert!(parse::sasl_initial_response(b"M\0\xff\xff\xff\xffx").is_err());
    for body in
        [&b"\0\x02\0\0\0\0\0\0"[..], b"\0\x03\0\x02\0\0\0\x01", b"\0\x03\0\x02\0\0\0\x01ab", b"\0\x03\0\x02"]
    {
        assert!(parse::negotiate_protocol_version(body).is_err());
    }
    let error = MalformedMessage { message: "Query", reason: "not one text ended by a zero byte" };
    assert_eq!(parse::query(b"").unwrap_err(), error);
}

#[test]
fn an_error_is_read_with_its_untranslated_severity() {
    let body = "SFATAL\u{e9}\0VFATAL\0C28P01\0Mnein\0DDetail\0HTipp\0Fauth.c\0L1\0\0";
    let fields = ErrorFields::parse(body.as_bytes());
    assert_eq!(fields.to_string(), "FATAL 28P01: nein");
    assert_eq!((fields.detail.as_deref(), fields.hint.as_deref()), (Some("Detail"), Some("Tipp")));
    assert_eq!(ErrorFields::parse(b"SERROR\0C1\0\0").severity, "ERROR", "before 9.6 there is no other");
}

#[test]
fn an_error_that_is_cut_off_or_not_utf8_is_still_told() {
    assert_eq!(ErrorFields::parse(b"SERROR\0Mbad \xff\0Dcut of").message, "bad \u{fffd}");
    assert_eq!(ErrorFields::parse(b""), ErrorFields::default());
}

#[test]
fn a_field_of_an_error_is_cut_at_its_limit() {
    let body = [&b"M"[..], &vec![b'x'; MAX_ERROR_FIELD_BYTES + 1], b"\0\0"].concat();
    assert_eq!(ErrorFields::parse(&body).message.len(), MAX_ERROR_FIELD_BYTES);
}

#[test]
fn zero_bytes_in_a_text_cannot_break_a_message_apart() {
    let message = error_response(Severity::Error, "XX000", "a\0Hforged", None, None);
    let fields = ErrorFields::parse(body_of(b'E', &message));
    assert_eq!((fields.message.as_str(), fields.hint), ("aHforged", None));
}

proptest! {
    #[test]
    fn errors_and_notices_are_read_back(
        message in "[^\0]*", detail in proptest::option::of("[^\0]*"), hint in proptest::option::of("[^\0]*")
    ) {
        let fields = ErrorFields { detail, hint, ..ErrorFields::new(Severity::Warning, "01000", message) };
        let error = built(|out| fields.write_error(out));
        prop_assert_eq!(&ErrorFields::parse(body_of(b'E', &error)), &fields);
        let notice = built(|out| fields.write_notice(out));
        prop_assert_eq!(&ErrorFields::parse(body_of(b'N', &notice)), &fields);
    }
}
