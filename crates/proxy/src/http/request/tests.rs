use super::*;

fn request(text: &str) -> Result<Request<'_>, HeadError> {
    Request::parse(text.as_bytes()).map(|read| read.expect("whole").0)
}

fn way(first: &str) -> Result<String, Reason> {
    let text = format!("{first} HTTP/1.1\r\n\r\n");
    let request = request(&text).unwrap();
    match request.way() {
        Ok(Way::Tunnel(target)) => Ok(format!("tunnel {target}")),
        Ok(Way::Forward { target, authority, path }) => Ok(format!("forward {target} {authority} {path}")),
        Err(refusal) => Err(refusal.reason),
    }
}

fn forwarded(text: &str) -> String {
    let request = request(text).unwrap();
    let Ok(Way::Forward { authority, path, .. }) = request.way() else { panic!("{text}") };
    let mut out = Vec::new();
    request.write_forwarded(authority, path, &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn a_tunnel_or_an_address_is_asked_for() {
    assert_eq!(way("CONNECT Example.org:443").unwrap(), "tunnel example.org:443");
    assert_eq!(way("CONNECT [2001:db8::1]:443").unwrap(), "tunnel [2001:db8::1]:443");
    assert_eq!(way("GET http://Example.org").unwrap(), "forward example.org:80 Example.org ");
    assert_eq!(
        way("GET http://example.org:8080/a?b").unwrap(),
        "forward example.org:8080 example.org:8080 /a?b"
    );
    assert_eq!(way("GET http://[::1]?q").unwrap(), "forward [::1]:80 [::1] ?q");
    assert_eq!(way("GET HTTP://2130706433/").unwrap(), "forward 127.0.0.1:80 2130706433 /");
}

#[test]
fn what_a_proxy_does_not_do_is_refused() {
    for bad in [
        "CONNECT example.org",
        "CONNECT example.org:0",
        "CONNECT http://example.org/",
        "GET /index.html",
        "GET *",
        "GET https://example.org/",
        "GET ftp://example.org/",
        "GET http:///x",
        "GET http://user:word@example.org/",
        "GET http://example.org:99999/",
        "GET http://example.org/#part",
    ] {
        assert_eq!(way(bad), Err(Reason::BadRequest), "{bad}");
    }
}

#[test]
fn only_one_body_can_be_read() {
    let with = |headers: &str| {
        let text = format!("POST http://x/ HTTP/1.1\r\n{headers}\r\n");
        request(&text).map(|request| request.body)
    };
    assert_eq!(with(""), Ok(Body::Length(0)));
    assert_eq!(with("Content-Length: 7\r\n"), Ok(Body::Length(7)));
    assert_eq!(with("Transfer-Encoding: Chunked\r\n"), Ok(Body::CHUNKED));
    let both = "Transfer-Encoding: chunked\r\nContent-Length: 7\r\n";
    assert_eq!(with(both), Err(HeadError::Length));
    for coding in ["gzip", "gzip, chunked", "chunked, chunked", "chunked;x"] {
        let coding = format!("Transfer-Encoding: {coding}\r\n");
        assert_eq!(with(&coding), Err(HeadError::TransferCoding), "{coding}");
    }
    let old = request("POST http://x/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n");
    assert_eq!(old.unwrap_err(), HeadError::TransferCoding);
    for version in ["HTTP/2.0", "HTTP/1.1 ", "http/1.1", "HTTP/1.2"] {
        assert!(request(&format!("GET http://x/ {version}\r\n\r\n")).is_err(), "{version}");
    }
}

#[test]
fn a_login_is_basic_and_may_have_colons_in_its_password() {
    let login = |value: &str| {
        let text = format!("GET http://x/ HTTP/1.1\r\nProxy-Authorization: {value}\r\n\r\n");
        request(&text).unwrap().login()
    };
    assert_eq!(login("Basic YWNtZTpwOnc="), Some(("acme".into(), b"p:w".to_vec())));
    assert_eq!(login("basic  YWNtZTo="), Some(("acme".into(), Vec::new())));
    for bad in ["Basic YWNtZQ==", "Basic !", "Bearer YWNtZTpwOnc=", "Basic", "é"] {
        assert_eq!(login(bad), None, "{bad}");
    }
}

#[test]
fn the_target_sees_nothing_that_was_meant_for_the_proxy() {
    let text = "GET http://Example.org:8080?q HTTP/1.1\r\nHost: other\r\nProxy-Authorization: Basic x\r\n\
                Connection: keep-alive, X-Mine\r\nX-Mine: 1\r\nProxy-Connection: keep-alive\r\nKeep-Alive: 5\r\n\
                TE: trailers\r\nUpgrade: h2c\r\nAccept: */*\r\nCookie: a=b\r\n\r\n";
    assert_eq!(
        forwarded(text),
        "GET /?q HTTP/1.1\r\nHost: Example.org:8080\r\nAccept: */*\r\nCookie: a=b\r\nConnection: close\r\n\r\n"
    );
    assert!(forwarded("OPTIONS http://x HTTP/1.1\r\n\r\n").starts_with("OPTIONS * HTTP/1.1\r\nHost: x\r\n"));
    let body = "POST http://x/ HTTP/1.1\r\nConnection: content-length\r\nContent-Length: 3\r\n\r\nabc";
    assert!(forwarded(body).contains("\r\nContent-Length: 3\r\n"), "the body would become a request");
    let chunks = "POST http://x/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert!(forwarded(chunks).contains("\r\nTransfer-Encoding: chunked\r\n"));
}

#[test]
fn a_connection_is_kept_as_its_version_says() {
    let keeps = |version: &str, headers: &str| {
        let text = format!("GET http://x/ {version}\r\n{headers}\r\n");
        request(&text).unwrap().keeps_alive()
    };
    assert!(keeps("HTTP/1.1", "") && !keeps("HTTP/1.0", ""));
    assert!(!keeps("HTTP/1.1", "Connection: close\r\n") && !keeps("HTTP/1.1", "Proxy-Connection: Close\r\n"));
    assert!(keeps("HTTP/1.0", "Proxy-Connection: keep-alive\r\n"));
}
