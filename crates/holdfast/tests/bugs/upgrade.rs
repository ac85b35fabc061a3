//! A server that comes back as another one.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use drill::postgres::{PostgresOptions, PrivatePostgres, StopMode};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep};

use crate::support::{House, PATIENCE, holdfast, value};

/// After the upgrade of a server its pool refused everybody: `server_version` was not what it used to be.
/// supavisor #663
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_comes_back_in_another_version_is_learnt_anew() {
    let postgres = PrivatePostgres::start(PostgresOptions::default()).unwrap();
    let upgraded = Arc::new(AtomicBool::new(false));
    let front = version_changer(postgres.tcp_address(), upgraded.clone()).await;
    let mut house = House::build_on(&holdfast(), postgres, false, |setup, _| {
        let line = format!("bench = host=127.0.0.1 port={}", front.port());
        setup.database(&line).setting("server_login_retry", "0")
    });
    let mut client = house.client().await;
    assert_eq!(value(&mut client, "select 'before'").await, "before");
    let before = client.parameter("server_version").unwrap().to_owned();
    house.postgres.stop(StopMode::Fast).unwrap();
    upgraded.store(true, Ordering::Relaxed);
    house.postgres.start_again().unwrap();
    // Whoever was there goes on, and is told at the first query that another server answers.
    let end = Instant::now() + PATIENCE;
    loop {
        let reply = client.query("select 'after'").await.unwrap();
        if reply.value() == Some("after") {
            break;
        }
        assert!(Instant::now() < end, "{reply:?}");
        sleep(std::time::Duration::from_millis(20)).await;
    }
    let after = format!("99{}", &before[2..]);
    assert_eq!(client.parameter("server_version"), Some(&*after));
    // And whoever comes is told at its login.
    let mut newcomer = house.client().await;
    assert_eq!(newcomer.parameter("server_version"), Some(&*after));
    assert_eq!(value(&mut newcomer, "select 'new'").await, "new");
}

/// Passes everything on, but for the version that the server reports once it is upgraded.
async fn version_changer(server: SocketAddr, upgraded: Arc<AtomicBool>) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let Ok(server) = TcpStream::connect(server).await else { continue };
            let upgraded = upgraded.load(Ordering::Relaxed);
            let (mut from_client, mut to_client) = client.into_split();
            let (mut from_server, mut to_server) = server.into_split();
            tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
            tokio::spawn(async move {
                let mut bytes = vec![0; 64 << 10];
                while let Ok(count @ 1..) = from_server.read(&mut bytes).await {
                    let came = &mut bytes[..count];
                    let name = b"server_version\0";
                    let at = came.windows(name.len()).position(|some| some == name);
                    if let Some(version) = at.map(|at| at + name.len()).filter(|_| upgraded) {
                        came[version..version + 2].copy_from_slice(b"99");
                    }
                    if to_client.write_all(came).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}
