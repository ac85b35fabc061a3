//! A relay whose process has no descriptor left. Alone in its program: the limit is the process's.
#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

#[path = "support.rs"]
mod support;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::File;
use std::time::Duration;
use support::{Network, echo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use trust::Role;

#[tokio::test(flavor = "multi_thread")]
async fn without_descriptors_nobody_new_is_accepted_and_everything_else_goes_on() {
    let network = Network::start().await;
    let provider = network.provider().await;
    let proxy = network.member(Role::Proxy);
    let link = network.connect(&proxy).await.unwrap();
    let contract = network.contract(&proxy, 1 << 30);
    let target = echo().await;
    let (mut stream, _) = link.open(&provider.request(&contract, target)).await.unwrap();
    let late = network.member(Role::Provider);
    let socket = TcpSocket::new_v4().unwrap();

    // Down to what is in use, and the rest taken.
    let before = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(256), maximum: before.maximum }).unwrap();
    let mut taken = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        taken.push(file);
    }
    let socket = socket.connect(network.address).await.unwrap();
    for _ in 0..30 {
        stream.write_all(&[1; 20_000]).await.unwrap();
        let mut back = vec![0; 20_000];
        tokio::time::timeout(Duration::from_secs(10), stream.read_exact(&mut back)).await.unwrap().unwrap();
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    assert_eq!(network.status.borrow().accepted, 2, "the provider and the proxy: there was a descriptor");
    drop(taken);
    // It has waited, and is served now.
    let address = network.address.to_string();
    let joining = client::Link::over(socket, &address, late.who(), None);
    tokio::time::timeout(Duration::from_secs(10), joining).await.unwrap().unwrap();
    setrlimit(Resource::Nofile, before).unwrap();
}
