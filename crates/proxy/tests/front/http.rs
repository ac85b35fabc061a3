//! CONNECT and requests in absolute form.

use std::time::Duration;

use tokio::io::AsyncWriteExt;
use trust::api::ErrorCode;

use crate::support::{answering, connect, echo, nobody, refusal, rest, start, start_with};
use crate::wire::{answer, basic, header, status, works};

#[tokio::test]
async fn a_tunnel_carries_bytes_and_names_its_exit() {
    let target = echo().await;
    let proxy = start(&[target]).await;
    let mut socket = connect(proxy.address).await;
    let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{}\r\n", basic("acme-cc-at"));
    socket.write_all(request.as_bytes()).await.unwrap();
    let (head, _) = answer(&mut socket).await;
    assert_eq!(status(&head), 200, "{head}");
    assert_eq!(header(&head, "X-Proxy-Exit"), Some("at/00000000000000000000000000000003"));
    works(&mut socket).await;
}

#[tokio::test]
async fn each_refusal_has_a_status_a_code_and_a_cause() {
    let (target, closed) = (echo().await, nobody().await);
    let proxy = start(&[target, closed]).await;
    let connect_to = |target: &str, login: &str| format!("CONNECT {target} HTTP/1.1\r\n{login}\r\n");
    let acme = basic("acme");
    let mut cases = vec![
        (connect_to(&target.to_string(), ""), 407, "login_required"),
        (connect_to(&target.to_string(), &basic("other")), 407, "login_failed"),
        (connect_to(&target.to_string(), &basic("acme-contry-de")), 400, "bad_username"),
        (connect_to(&target.to_string(), &basic("acme-country-fr")), 503, "no_provider"),
        (connect_to("10.1.2.3:80", &acme), 403, "policy"),
        (connect_to("localhost:80", &acme), 403, "policy"),
        (connect_to(&closed.to_string(), &acme), 502, "target_refused"),
        (connect_to("example.org", &acme), 400, "bad_request"),
        (format!("GET / HTTP/1.1\r\nHost: x\r\n{acme}\r\n"), 400, "bad_request"),
        (format!("GET https://example.org/ HTTP/1.1\r\n{acme}\r\n"), 400, "bad_request"),
        ("BREW pot HTCPCP/1.0\r\n\r\n".into(), 400, "bad_request"),
    ];
    cases.push((format!("GET http://x/ HTTP/1.1\r\nA: {}\r\n\r\n", "x".repeat(17_000)), 431, "too_large"));
    for (request, wanted, code) in cases {
        let mut socket = connect(proxy.address).await;
        socket.write_all(request.as_bytes()).await.unwrap();
        let (head, body) = answer(&mut socket).await;
        assert_eq!(
            (status(&head), header(&head, "X-Proxy-Error")),
            (wanted, Some(code)),
            "{request:.60}: {head}"
        );
        assert!(String::from_utf8(body).unwrap().starts_with(&format!("{code}: ")));
        assert_eq!(header(&head, "Retry-After").is_some(), wanted == 503, "{head}");
        assert_eq!(header(&head, "Proxy-Authenticate").is_some(), wanted == 407, "{head}");
    }
}

#[tokio::test]
async fn without_a_grant_there_is_nothing_but_the_cause() {
    let target = echo().await;
    let proxy = start_with(&[target], |_, api| {
        api.refusal = Some(refusal(ErrorCode::GrantSpent, "everything that was granted is used"));
    })
    .await;
    let mut socket = connect(proxy.address).await;
    socket.write_all(format!("CONNECT {target} HTTP/1.1\r\n{}\r\n", basic("acme")).as_bytes()).await.unwrap();
    let (head, body) = answer(&mut socket).await;
    assert_eq!((status(&head), header(&head, "X-Proxy-Error")), (402, Some("no_grant")));
    assert_eq!(body, b"no_grant: everything that was granted is used\n");
}

#[tokio::test]
async fn a_refused_request_can_be_made_again_on_the_same_connection() {
    let target = echo().await;
    let proxy = start(&[target]).await;
    let mut socket = connect(proxy.address).await;
    socket.write_all(format!("CONNECT {target} HTTP/1.1\r\n\r\n").as_bytes()).await.unwrap();
    assert_eq!(status(&answer(&mut socket).await.0), 407);
    socket.write_all(format!("CONNECT {target} HTTP/1.1\r\n{}\r\n", basic("acme")).as_bytes()).await.unwrap();
    assert_eq!(status(&answer(&mut socket).await.0), 200);
    works(&mut socket).await;
}

#[tokio::test]
async fn requests_to_different_hosts_follow_each_other_on_one_connection() {
    let (one, seen_by_one) =
        answering(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\none").await;
    let (two, seen_by_two) =
        answering(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Made\r\nTransfer-Encoding: chunked\r\n\r\n3\r\ntwo\r\n0\r\n\r\n").await;
    let proxy = start(&[one, two]).await;
    let mut socket = connect(proxy.address).await;
    let acme = basic("acme");
    // All three at once: none may be mixed up with another.
    let requests = format!(
        "GET http://{one}/a HTTP/1.1\r\nHost: {one}\r\n{acme}\r\n\
         POST http://{two}/b HTTP/1.1\r\n{acme}Content-Length: 5\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\n\r\nhello\
         GET http://{one}/c HTTP/1.1\r\n{acme}Connection: close\r\n\r\n"
    );
    socket.write_all(requests.as_bytes()).await.unwrap();
    let received = String::from_utf8(rest(&mut socket).await).unwrap();
    assert_eq!(
        received,
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: keep-alive\r\n\r\none\
         HTTP/1.1 100 Continue\r\n\r\n\
         HTTP/1.1 201 Made\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n3\r\ntwo\r\n0\r\n\r\n\
         HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\none"
    );
    let posted = String::from_utf8(seen_by_two.lock().unwrap()[0].clone()).unwrap();
    assert_eq!(
        posted,
        format!("POST /b HTTP/1.1\r\nHost: {two}\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
    );
    assert_eq!(seen_by_one.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn an_answer_that_ends_with_its_connection_ends_ours() {
    let (target, _) = answering(b"HTTP/1.0 200 OK\r\n\r\nuntil the end").await;
    let (cut, _) = answering(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nnot all").await;
    let (nothing, _) = answering(b"").await;
    let (nonsense, _) = answering(b"SSH-2.0-x\r\n\r\n").await;
    let proxy = start(&[target, cut, nothing, nonsense]).await;
    let get = |target| format!("GET http://{target}/ HTTP/1.1\r\n{}\r\n", basic("acme"));
    let mut socket = connect(proxy.address).await;
    socket.write_all(get(target).as_bytes()).await.unwrap();
    let received = String::from_utf8(rest(&mut socket).await).unwrap();
    assert_eq!(received, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end");
    let mut socket = connect(proxy.address).await;
    socket.write_all(get(cut).as_bytes()).await.unwrap();
    let received = String::from_utf8(rest(&mut socket).await).unwrap();
    assert!(received.ends_with("not all"), "cut short, and seen to be: {received}");
    for bad in [nothing, nonsense] {
        let mut socket = connect(proxy.address).await;
        socket.write_all(get(bad).as_bytes()).await.unwrap();
        let (head, _) = answer(&mut socket).await;
        assert_eq!((status(&head), header(&head, "X-Proxy-Error")), (502, Some("bad_answer")));
    }
}

#[tokio::test]
async fn a_large_chunked_body_is_passed_on_as_it_comes() {
    let (target, seen) = answering(b"HTTP/1.1 204 Done\r\n\r\n").await;
    let proxy = start(&[target]).await;
    let mut socket = connect(proxy.address).await;
    let head =
        format!("PUT http://{target}/ HTTP/1.1\r\n{}Transfer-Encoding: chunked\r\n\r\n", basic("acme"));
    socket.write_all(head.as_bytes()).await.unwrap();
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(65_536));
    for _ in 0..8 {
        socket.write_all(chunk.as_bytes()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    socket.write_all(b"0\r\n\r\n").await.unwrap();
    let (head, _) = answer(&mut socket).await;
    assert_eq!((status(&head), header(&head, "Connection")), (204, Some("keep-alive")), "{head}");
    let length = seen.lock().unwrap()[0].len();
    assert!(length > 8 * 65_536, "{length}");
}

#[tokio::test]
async fn a_kept_connection_does_not_hold_up_a_stop() {
    let (target, _) = answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
    let proxy = start_with(&[target], |config, _| config.drain_s = 20).await;
    let mut socket = connect(proxy.address).await;
    let get = format!("GET http://{target}/ HTTP/1.1\r\n{}\r\n", basic("acme"));
    socket.write_all(get.as_bytes()).await.unwrap();
    assert_eq!(header(&answer(&mut socket).await.0, "Connection"), Some("keep-alive"));
    tokio::time::timeout(Duration::from_secs(5), proxy.stop()).await.expect("it waits for the next request");
    assert!(rest(&mut socket).await.is_empty());
}
