//! Without a disk, without a database, and without a goodbye: what goes on, and what is billed.
#![allow(missing_docs)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[path = "support.rs"]
mod support;

use relay::{Config, Stop};
use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;
use support::{Network, echo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use trust::Role;

/// There and back.
async fn echo_once(stream: &mut client::Stream, bytes: usize) {
    stream.write_all(&vec![1; bytes]).await.unwrap();
    let mut back = vec![0; bytes];
    tokio::time::timeout(Duration::from_secs(20), stream.read_exact(&mut back)).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_database_gone_everything_goes_on_and_usage_is_sent_once_it_is_back() {
    let network = Network::start().await;
    let provider = network.provider().await;
    network.written.0.lock().unwrap().broken = true;
    let proxy = network.member(Role::Proxy);
    let link = network.connect(&proxy).await.unwrap();
    let contract = network.contract(&proxy, 1 << 30);
    let target = echo().await;
    for _ in 0..3 {
        let (mut stream, _) = link.open(&provider.request(&contract, target)).await.unwrap();
        echo_once(&mut stream, 100_000).await;
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
    let second = network.provider().await;
    let (mut stream, _) = link.open(&second.request(&contract, target)).await.unwrap();
    echo_once(&mut stream, 100_000).await;
    assert_eq!(network.written.billed(), 0);
    let carried = network.until(|status| status.bytes > 800_000).await.bytes;
    tokio::time::sleep(Duration::from_millis(600)).await;
    let carried = carried.max(network.status.borrow().bytes);
    network.written.0.lock().unwrap().broken = false;
    for _ in 0..100 {
        let known = network.written.0.lock().unwrap().presence.len();
        if network.written.billed() == carried && known == 2 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(network.written.billed(), carried, "all of it");
    let book = network.written.0.lock().unwrap();
    let names: HashSet<_> =
        book.usage.iter().map(|(epoch, usage)| (*epoch, usage.contract, usage.sequence)).collect();
    assert_eq!(names.len(), book.usage.len(), "each record once");
    assert_eq!(book.presence.len(), 2, "both providers are known");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_that_is_full_begins_nothing_new_and_ends_nothing() {
    // Two records.
    let network = Network::with(|config| config.journal_bytes = 80).await;
    let provider = network.provider().await;
    network.written.0.lock().unwrap().broken = true;
    let proxy = network.member(Role::Proxy);
    let link = network.connect(&proxy).await.unwrap();
    let contract = network.contract(&proxy, 1 << 30);
    let target = echo().await;
    let (mut stream, _) = link.open(&provider.request(&contract, target)).await.unwrap();
    let mut refused = None;
    for _ in 0..50 {
        echo_once(&mut stream, 1_000).await;
        tokio::time::sleep(Duration::from_millis(60)).await;
        if let Err(error) = link.open(&provider.request(&contract, target)).await {
            refused = error.code();
            break;
        }
    }
    assert_eq!(refused, Some(link::Code::Busy));
    for _ in 0..10 {
        echo_once(&mut stream, 50_000).await;
    }
    // It is written beyond the limit, rather than lost; and once it is sent, new streams are taken, though nothing is used.
    drop(stream);
    network.written.0.lock().unwrap().broken = false;
    let mut taken = false;
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        if link.open(&provider.request(&contract, target)).await.is_ok() {
            taken = true;
            break;
        }
    }
    assert!(taken, "it stays full");
    let carried = network.status.borrow().bytes;
    assert_eq!(network.written.billed(), carried);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_does_not_start_on_a_folder_that_another_uses_or_that_it_cannot_write() {
    let network = Network::start().await;
    let used = Network::try_with(|config: &mut Config| {
        config.state_folder = network.folder.path().join("relay");
    })
    .await;
    assert!(used.contains("another relay uses this folder"), "{used}");
    if rustix::process::geteuid().is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o500)).unwrap();
    let locked =
        Network::try_with(|config: &mut Config| config.state_folder = folder.path().join("relay")).await;
    assert!(locked.contains("cannot be used"), "{locked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_on_the_disk_is_billed_after_the_next_start() {
    let network = Network::start().await;
    let provider = network.provider().await;
    network.written.0.lock().unwrap().broken = true;
    let proxy = network.member(Role::Proxy);
    let link = network.connect(&proxy).await.unwrap();
    let contract = network.contract(&proxy, 1 << 30);
    let (mut stream, _) = link.open(&provider.request(&contract, echo().await)).await.unwrap();
    echo_once(&mut stream, 200_000).await;
    drop(stream);
    let carried = network.until(|status| status.bytes > 400_000 && status.streams == 0).await.bytes;
    network.stop.send_replace(Stop::Now);
    let Network { running, written, folder, .. } = network;
    running.await.unwrap().unwrap();
    assert_eq!(written.billed(), 0);
    written.0.lock().unwrap().broken = false;
    let state = folder.path().join("relay");
    let next = Network::recording(written.clone(), |config| config.state_folder.clone_from(&state)).await;
    for _ in 0..100 {
        if written.billed() > 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // The sealed ends that both sides sent cost nothing.
    assert!(carried - written.billed() <= 32, "{carried} {}", written.billed());
    drop(next);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_vanishes_is_back_with_the_next_beat_and_so_are_the_clients() {
    let network = Network::with(|config| config.beat_interval_ms = 100).await;
    let first = network.provider().await;
    let second = network.provider().await;
    let book = || network.written.0.lock().unwrap();
    for _ in 0..200 {
        if book().known && book().presence.len() == 2 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let told = book().presence.clone();
    assert_eq!(told.len(), 2);
    // The record, and with it the rows of those who are connected.
    {
        let mut book = book();
        book.known = false;
        book.presence.clear();
    }
    for _ in 0..200 {
        if book().presence.len() == 2 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let mut again = book().presence.clone();
    again.sort_by_key(|presence| told.iter().position(|told| told == presence));
    assert_eq!(again, told, "with the moments at which they came, and once");
    // Nobody has noticed.
    let proxy = network.member(Role::Proxy);
    let link = network.connect(&proxy).await.unwrap();
    let contract = network.contract(&proxy, 1 << 30);
    for provider in [&first, &second] {
        let (mut stream, _) = link.open(&provider.request(&contract, echo().await)).await.unwrap();
        echo_once(&mut stream, 10_000).await;
    }
}

/// Long enough that what goes on before it is told is no outage.
fn in_an_outage(config: &mut Config) {
    config.offline_after_ms = 300;
    config.contract_wait_ms = 60_000;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_database_gone_a_stream_goes_on_beyond_its_block_and_every_byte_is_billed_once_it_is_back() {
    let network = Network::with(in_an_outage).await;
    let provider = network.provider().await;
    let proxy = network.member(Role::Proxy);
    let link = network.connect(&proxy).await.unwrap();
    let (block, target) = (1 << 20, echo().await);
    let contract = network.contract(&proxy, block);
    let (mut stream, _) = link.open(&provider.request(&contract, target)).await.unwrap();
    network.written.0.lock().unwrap().broken = true;
    // There and back: three quarters of the block, and as much again. Nobody knows of the outage when the block is used up, and
    // what waits goes on long before its patience is over.
    for _ in 0..2 {
        echo_once(&mut stream, (block * 3 / 8) as usize).await;
    }
    let status = network.until(|status| status.allowance_bytes > 0).await;
    assert_eq!(status.allowances, 1);
    network.written.0.lock().unwrap().broken = false;
    let status = network.until(|status| !status.offline && status.bytes > block * 3 / 2).await;
    for _ in 0..100 {
        if network.written.billed() == status.bytes {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(network.written.billed(), status.bytes);
    assert!(network.written.billed() > block);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_allowance_is_bounded_and_there_is_none_while_the_database_answers() {
    for is_gone in [false, true] {
        let network = Network::with(in_an_outage).await;
        let provider = network.provider().await;
        let proxy = network.member(Role::Proxy);
        let link = network.connect(&proxy).await.unwrap();
        let block = 1 << 20;
        let contract = network.contract(&proxy, block);
        let (mut stream, _) = link.open(&provider.request(&contract, echo().await)).await.unwrap();
        network.written.0.lock().unwrap().broken = is_gone;
        if is_gone {
            network.until(|status| status.offline).await;
        }
        let mut back = vec![0; 16_384];
        let far = 4 * (block + ledger::GREATEST_ALLOWANCE_BYTES);
        let mut carried = 0;
        let ended = loop {
            let sent = stream.write_all(&vec![1; back.len()]).await;
            // Then it waits for a block that does not come.
            let patience = Duration::from_secs(5);
            let read = tokio::time::timeout(patience, stream.read_exact(&mut back)).await;
            match (sent, read) {
                (Ok(()), Ok(Ok(_))) => carried += 2 * back.len() as u64,
                _ => break true,
            }
            if carried > far {
                break false;
            }
        };
        let most = if is_gone { ledger::most_carried_bytes(block) } else { block };
        drop(stream);
        let bytes = network.until(|status| status.streams == 0).await.bytes;
        assert!(ended && bytes <= most && bytes > most - 100_000, "{is_gone}: {bytes} of {most}");
    }
}
