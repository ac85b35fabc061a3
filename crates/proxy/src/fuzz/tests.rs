use proptest::prelude::*;

use super::*;

/// Pieces out of which messages that are nearly right are made.
const PIECES: &[&str] = &[
    "GET ",
    "POST ",
    "CONNECT ",
    "OPTIONS ",
    "http://example.org",
    "http://[::1]:8080",
    "example.org:443",
    "/",
    "?q",
    " HTTP/1.1",
    " HTTP/1.0",
    "HTTP/1.1 ",
    "HTTP/1.0 ",
    "200 OK",
    "100 x",
    "204",
    "\r\n",
    "\r\n\r\n",
    "\n",
    "\r",
    " ",
    ":",
    "Host: x\r\n",
    "Content-Length: 5\r\n",
    "Content-Length: 0\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Connection: close\r\n",
    "Connection: x, transfer-encoding, content-length\r\n",
    "Proxy-Authorization: Basic YTpi\r\n",
    "Upgrade: h2c\r\n",
    "x: y\r\n",
    "5\r\nabcde\r\n",
    "0\r\n\r\n",
    "0\r\nA: b\r\n\r\n",
    "abcde",
    "\u{0}",
    "é",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_client_breaks_the_socks_parser(
        version in prop::sample::select(vec![5_u8, 1, 4]),
        second in 0_u8..6,
        rest in prop::collection::vec(any::<u8>(), 0..600),
    ) {
        socks_client(&[&[version, second], &rest[..]].concat());
        let named = [&[5, 1, 0, 3, u8::try_from(rest.len().min(40)).unwrap()], &rest[..]].concat();
        socks_client(&named);
    }

    #[test]
    fn no_bytes_break_the_http_parser(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..14)) {
        let text = pieces.concat();
        http_request(text.as_bytes());
        http_response(text.as_bytes());
    }

    #[test]
    fn messages_that_are_nearly_right_break_nothing(
        headers in prop::collection::vec(prop::sample::select(PIECES), 0..8),
        body in prop::collection::vec(prop::sample::select(PIECES), 0..4),
    ) {
        let (headers, body) = (headers.concat(), body.concat());
        http_request(format!("POST http://example.org/x HTTP/1.1\r\n{headers}\r\n{body}").as_bytes());
        http_response(format!("HTTP/1.1 200 OK\r\n{headers}\r\n{body}").as_bytes());
    }
}
