//! What a client with TLS costs while it is idle: what rustls keeps of a connection, and nothing else.

use std::io::Write as _;
use std::time::Duration;

use drill::process::raise_descriptor_limit;
use tokio::time::sleep;

use crate::certificates::Files;
use crate::release;
use crate::tls_client::{TlsClient, config, message};

const CLIENTS: usize = 500;

/// Resident memory of the process for each client that is logged in over TLS and idle, bytes.
const BYTES_PER_CLIENT: f64 = 6.0 * 1024.0;

/// A thousand rows of a kilobyte, in messages of eight.
fn copy_in(client: &mut TlsClient) {
    client.stream.write_all(&message(b'Q', b"copy t from stdin where false\0")).unwrap();
    client.until(b'G');
    let rows = message(b'd', format!("{}\n", "x".repeat(1000)).repeat(8).as_bytes());
    for _ in 0..125 {
        client.stream.write_all(&rows).unwrap();
    }
    client.stream.write_all(&message(b'c', b"")).unwrap();
    client.until(b'Z');
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_client_with_tls_costs_six_kilobytes_before_and_after_a_megabyte_of_copy() {
    raise_descriptor_limit();
    let files = Files::new();
    let house = release::house(|setup| files.offer(setup, "require"));
    house.postgres.admin("create table t (x text); grant all on t to bench").unwrap();
    let config = config(&files.read("ca.pem"), &[]);
    let client = || {
        let mut client = TlsClient::connect(house.pooler.address(), &config).unwrap();
        client.log_in();
        client
    };
    // A first client brings what all share.
    let mut first = client();
    copy_in(&mut first);
    sleep(Duration::from_secs(1)).await;
    let start = house.resident_bytes();
    let each = |resident: u64| (resident as f64 - start as f64) / CLIENTS as f64;
    let mut clients: Vec<TlsClient> = (0..CLIENTS).map(|_| client()).collect();
    sleep(Duration::from_secs(1)).await;
    let idle = each(house.resident_bytes());
    clients.iter_mut().for_each(copy_in);
    sleep(Duration::from_secs(1)).await;
    let after = each(house.resident_bytes());
    eprintln!("bytes for each idle client with TLS: {idle:.0}, after 1 MB of COPY: {after:.0}");
    assert!(idle <= BYTES_PER_CLIENT, "{idle}");
    assert!(after <= BYTES_PER_CLIENT, "{after}");
}
