use super::*;
use link::Code;
use std::io;

fn broken() -> LinkError {
    LinkError::io("receiving", io::ErrorKind::ConnectionReset.into())
}

fn unreachable() -> LinkError {
    LinkError::io(LinkError::CONNECTING, io::ErrorKind::ConnectionRefused.into())
}

fn refused() -> LinkError {
    LinkError::Refused { code: Code::Busy, cause: String::new(), retry_after: None }
}

#[tokio::test(start_paused = true)]
async fn a_way_that_fails_gives_way_to_the_other_and_the_one_that_works_is_kept() {
    let ways = Ways::default();
    assert_eq!(ways.next(0), Transport::Direct);
    ways.tried(Transport::Direct, Some(&broken()));
    assert_eq!(ways.next(0), Transport::WebSocket);
    ways.tried(Transport::WebSocket, None);
    for _ in 0..3 {
        assert_eq!(ways.next(0), Transport::WebSocket);
        ways.tried(Transport::WebSocket, Some(&refused()));
    }
    tokio::time::advance(RECHECKED_AFTER).await;
    assert_eq!(ways.next(0), Transport::Direct, "the straight way was never tried again");
    ways.tried(Transport::Direct, Some(&broken()));
    assert_eq!(ways.next(0), Transport::WebSocket);
    ways.tried(Transport::WebSocket, Some(&broken()));
    assert_ne!(ways.next(0), ways.next(1), "after that it is by lot");
}

#[tokio::test]
async fn a_port_where_nobody_listens_says_nothing_about_the_way() {
    let ways = Ways::default();
    ways.tried(Transport::Direct, Some(&unreachable()));
    assert_eq!(ways.next(1), Transport::Direct);
    let ways = Ways::default().through(HttpProxy::new("http://proxy:3128", "").unwrap());
    ways.tried(Transport::Direct, Some(&unreachable()));
    assert_eq!(ways.next(0), Transport::WebSocket, "a proxy may reach what this machine cannot");
    let only = Ways::only(Transport::WebSocket);
    only.tried(Transport::WebSocket, Some(&broken()));
    assert_eq!(only.next(0), Transport::WebSocket);
}

#[test]
fn a_proxy_is_read_as_programs_write_it() {
    let address = |url: &str| HttpProxy::new(url, "").map(|proxy| proxy.address().to_owned());
    assert_eq!(address("http://proxy.example:3128/").unwrap(), "proxy.example:3128");
    assert_eq!(address("proxy.example").unwrap(), "proxy.example:80");
    assert_eq!(address("http://u:p@[::1]:8080").unwrap(), "[::1]:8080");
    assert_eq!(address("http://[::1]").unwrap(), "[::1]:80");
    assert_eq!(address("socks5://a:1"), Err(ProxyError::Scheme("socks5".to_owned())));
    for wrong in ["", "http://", "http://a:0", "http://a:x", "http://a b:1", "http://:80"] {
        assert_eq!(address(wrong), Err(ProxyError::Malformed), "{wrong}");
    }
    let proxy = HttpProxy::new("http://me%40home:p%3Aw@a:1", " .example.org, 127.0.0.1").unwrap();
    assert_eq!(proxy.authorization.as_deref(), Some("Basic bWVAaG9tZTpwOnc="));
    assert!(!format!("{proxy:?}").contains("bWVA"));
    assert!(proxy.is_for("example.com") && proxy.is_for("myexample.org"));
    assert!(!proxy.is_for("a.Example.org") && !proxy.is_for("example.org") && !proxy.is_for("127.0.0.1"));
    assert!(!HttpProxy::new("a", "*").unwrap().is_for("anything"));
}
