//! Work through a proxy by fast-socks5. Arguments: proxy, user name, password, the port of a target on 127.0.0.1 that sends back
//! what it gets.

use fast_socks5::client::{Config, Socks5Stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [proxy, user, password, port] = arguments.as_slice() else { panic!("four arguments") };
    let port = port.parse().expect("a port");
    let through = |user: &str, password: &str, port| {
        let (user, password) = (user.to_owned(), password.to_owned());
        let host = "127.0.0.1".to_owned();
        Socks5Stream::connect_with_password(proxy.clone(), host, port, user, password, Config::default())
    };
    let mut streams = Vec::new();
    for _ in 0..20 {
        streams.push(through(user, password, port).await.expect("a stream"));
    }
    for stream in &mut streams {
        stream.write_all(&[7; 100_000]).await.expect("written");
    }
    for stream in &mut streams {
        let mut back = vec![0; 100_000];
        stream.read_exact(&mut back).await.expect("read");
        assert!(back.iter().all(|byte| *byte == 7));
    }
    assert!(through(user, "wrong", port).await.is_err(), "a wrong password is let in");
    let refused = through(user, password, 1).await.err().expect("a target that is not there");
    assert!(format!("{refused:?}").to_lowercase().contains("notallowed"), "{refused:?}");
}
