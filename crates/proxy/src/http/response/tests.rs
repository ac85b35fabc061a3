use super::*;

fn response(text: &str) -> Result<Response<'_>, HeadError> {
    Response::parse(text.as_bytes()).map(|read| read.expect("whole").0)
}

#[test]
fn a_status_line_is_read() {
    assert_eq!(response("HTTP/1.1 200 OK\r\n\r\n").unwrap().status, 200);
    assert_eq!(response("HTTP/1.0 404\r\n\r\n").unwrap().status, 404);
    for bad in ["HTTP/1.1 20 OK", "HTTP/1.1 2000", "HTTP/1.1 099", "HTTP/1.1 600", "SSH-2.0-x", "HTTP/2 200"]
    {
        assert!(response(&format!("{bad}\r\n\r\n")).is_err(), "{bad}");
    }
}

#[test]
fn a_body_ends_as_the_status_and_headers_say() {
    let body = |text: &str, method| response(&format!("HTTP/1.1 {text}\r\n\r\n")).unwrap().body(method);
    assert_eq!(body("200 OK\r\nContent-Length: 5", "GET"), Ok(Body::Length(5)));
    assert_eq!(body("200 OK\r\nContent-Length: 5", "HEAD"), Ok(Body::Length(0)));
    assert_eq!(body("304 x\r\nContent-Length: 5", "GET"), Ok(Body::Length(0)));
    assert_eq!(body("204 x", "GET"), Ok(Body::Length(0)));
    assert_eq!(body("103 x", "GET"), Ok(Body::Length(0)));
    assert_eq!(body("200 OK\r\nTransfer-Encoding: chunked", "GET"), Ok(Body::CHUNKED));
    assert_eq!(body("200 OK", "GET"), Ok(Body::UntilClose));
    let both = "200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5";
    assert_eq!(body(both, "GET"), Err(HeadError::Length));
}

#[test]
fn the_customer_learns_how_the_connection_goes_on() {
    let text = "HTTP/1.0 200 Fine\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nContent-Length: 2\r\n\r\n";
    let mut out = Vec::new();
    response(text).unwrap().write_forwarded(Behind::KeepAlive, &mut out);
    assert_eq!(out, b"HTTP/1.1 200 Fine\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\n");
    let mut out = Vec::new();
    response("HTTP/1.1 100 Continue\r\n\r\n").unwrap().write_forwarded(Behind::KeepAlive, &mut out);
    assert_eq!(out, b"HTTP/1.1 100 Continue\r\n\r\n");
}
