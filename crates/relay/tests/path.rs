//! Streams from an opener through a relay to a provider and the world.
#![allow(missing_docs)]

#[path = "support.rs"]
mod support;

use client::{Code, Family, Host, Link, OpenError, OpenRequest, Opens, SpliceEnd, SpliceLimits, Target};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use support::{Network, echo, endless};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use trust::Role;

const MB: usize = 1_000_000;

#[tokio::test(flavor = "multi_thread")]
async fn bytes_come_back_whole_through_a_provider_and_are_billed() {
    let network = Network::start().await;
    let provider = network.provider().await;
    let proxy = network.member(Role::Proxy);
    let link = network.connect(&proxy).await.unwrap();
    let contract = network.contract(&proxy, 1 << 30);
    let target = echo().await;
    let (stream, reached) = link.open(&provider.request(&contract, target)).await.unwrap();
    assert_eq!(reached, target.ip());
    let (mut read, mut write) = tokio::io::split(stream);
    let data: Vec<u8> = (0..5 * MB).map(|index| (index % 251) as u8).collect();
    let sent = data.clone();
    let writing = tokio::spawn(async move {
        write.write_all(&sent).await.unwrap();
        write.shutdown().await.unwrap();
    });
    let mut received = Vec::new();
    read.read_to_end(&mut received).await.unwrap();
    writing.await.unwrap();
    assert!(received == data);
    network.until(|status| status.streams == 0).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let billed = network.written.billed();
    // Both ways, and 16 bytes for each message.
    assert!(billed >= 10 * MB as u64 && billed < 10 * MB as u64 * 102 / 100, "{billed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_splice_carries_both_ways_and_ends_in_good_order() {
    let network = Network::start().await;
    let provider = network.provider().await;
    let proxy = network.member(Role::Proxy);
    let link = network.connect(&proxy).await.unwrap();
    let contract = network.contract(&proxy, 1 << 30);
    let target = echo().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let customer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (socket, _) = listener.accept().await.unwrap();
    let (stream, _) = link.open(&provider.request(&contract, target)).await.unwrap();
    let splicing = tokio::spawn(stream.splice(socket, b"early ", SpliceLimits::default()));
    let (mut read, mut write) = customer.into_split();
    let data: Vec<u8> = (0..20 * MB).map(|index| (index % 253) as u8).collect();
    let sent = data.clone();
    let writing = tokio::spawn(async move {
        write.write_all(&sent).await.unwrap();
        write.shutdown().await.unwrap();
    });
    let mut received = Vec::new();
    read.read_to_end(&mut received).await.unwrap();
    writing.await.unwrap();
    assert_eq!(&received[..6], b"early ");
    assert!(received[6..] == data);
    let report = splicing.await.unwrap();
    assert_eq!(report.end, SpliceEnd::Finished);
    assert_eq!((report.sent, report.received), (20 * MB as u64 + 6, 20 * MB as u64 + 6));
    network.until(|status| status.streams == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stalled_reader_stalls_nobody_else() {
    let network = Network::start().await;
    let provider = network.provider().await;
    let proxy = network.member(Role::Proxy);
    let link = network.connect(&proxy).await.unwrap();
    let contract = network.contract(&proxy, 1 << 40);
    let target = endless().await;
    let (stalled, _) = link.open(&provider.request(&contract, target)).await.unwrap();
    let (mut running, _) = link.open(&provider.request(&contract, target)).await.unwrap();
    let mut buffer = vec![0; 65_536];
    let mut count = 0;
    let reading = async {
        while count < 50 * MB {
            count += running.read(&mut buffer).await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(30), reading).await.expect("the other stream stands still");
    // What lies here for the stalled one is its window.
    let queued = network.until(|_| true).await.queued_bytes;
    assert!(queued < 16 << 20, "{queued} bytes wait in the relay");
    drop(stalled);
}

/// Of those who wait for room, the ones that were served go behind the others: once the last to be woken was the first to run,
/// and a few of a hundred streams had nearly all of the link.
#[tokio::test(flavor = "multi_thread")]
async fn streams_of_one_provider_share_its_link() {
    const STREAMS: usize = 30;
    let network = Network::start().await;
    let provider = network.provider().await;
    let proxy = network.member(Role::Proxy);
    let link = network.connect(&proxy).await.unwrap();
    let contract = network.contract(&proxy, 1 << 40);
    let target = endless().await;
    let mut reading = Vec::new();
    for _ in 0..STREAMS {
        let (mut stream, _) = link.open(&provider.request(&contract, target)).await.unwrap();
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let task = tokio::spawn(async move {
            let mut buffer = vec![0; 65_536];
            while let Ok(bytes @ 1..) = stream.read(&mut buffer).await {
                counted.fetch_add(bytes, Ordering::Relaxed);
            }
        });
        reading.push((task, count));
    }
    let bytes = || reading.iter().map(|(_, count)| count.load(Ordering::Relaxed)).collect::<Vec<_>>();
    let before = bytes();
    // Enough for each to have some dozens of turns, however slow the machine is.
    let mut shares = Vec::new();
    for _ in 0..600 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        shares = bytes().iter().zip(&before).map(|(now, before)| now - before).collect();
        if shares.iter().sum::<usize>() >= STREAMS * 8 * MB {
            break;
        }
    }
    reading.iter().for_each(|(task, _)| task.abort());
    let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
    assert!(3 * least >= *most, "{least} to {most}: {shares:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_name_their_cause() {
    let network = Network::start().await;
    let first = support::next_epoch();
    let provider = network.provider().await;
    let proxy = network.member(Role::Proxy);
    let other = network.member(Role::Proxy);
    let link = network.connect(&proxy).await.unwrap();
    let contract = network.contract(&proxy, 1 << 20);
    let target = echo().await;
    let code = |result: Result<_, OpenError>| result.map(|_: (client::Stream, _)| ()).unwrap_err().code();

    let mut gone = provider.request(&contract, target);
    gone.provider = trust::ClientId::random();
    assert_eq!(code(link.open(&gone).await), Some(Code::ProviderGone));

    let mut stale = provider.request(&contract, target);
    stale.provider_epoch = u64::MAX;
    assert_eq!(code(link.open(&stale).await), Some(Code::Stale));
    // A list that is older than its start leads to it all the same.
    let mut older = provider.request(&contract, target);
    older.provider_epoch = first;
    let Err(OpenError::Moved { address, epoch }) = link.open(&older).await else { panic!("not sent on") };
    assert_eq!(address, network.address.to_string());
    older.provider_epoch = epoch;
    assert!(link.open(&older).await.is_ok());

    let stolen = network.contract(&other, 1 << 20);
    assert_eq!(code(link.open(&provider.request(&stolen, target)).await), Some(Code::ContractInvalid));

    let mut forged = network.contract(&proxy, 1 << 20);
    forged.text = forged.text.replace('.', "-").into();
    assert_eq!(code(link.open(&provider.request(&forged, target)).await), Some(Code::ContractInvalid));

    let mut wrong_key = provider.request(&contract, target);
    wrong_key.provider_key = other.identity.public().seal_key();
    assert_eq!(code(link.open(&wrong_key).await), Some(Code::SealInvalid));

    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    assert_eq!(code(link.open(&provider.request(&contract, closed)).await), Some(Code::TargetRefused));
    network.until(|status| status.streams == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_contract_that_is_spent_ends_the_stream_unless_another_follows() {
    let network = Network::start().await;
    let provider = network.provider().await;
    let proxy = network.member(Role::Proxy);
    let link = network.connect(&proxy).await.unwrap();
    let target = echo().await;
    for follows in [false, true] {
        let contract = network.contract(&proxy, MB as u64);
        let (mut stream, _) = link.open(&provider.request(&contract, target)).await.unwrap();
        if follows {
            link.show(&network.contract_after(&proxy, 10 * MB as u64, Some(contract.id)));
        }
        let mut received = 0;
        let mut buffer = vec![0; 65_536];
        let outcome = loop {
            if received >= MB {
                break Ok(());
            }
            if let Err(error) = stream.write_all(&[1; 10_000]).await {
                break Err(error);
            }
            match stream.read(&mut buffer).await {
                Ok(count) => received += count,
                Err(error) => break Err(error),
            }
        };
        assert_eq!(outcome.is_ok(), follows, "{outcome:?}");
        if !follows {
            assert_eq!(stream.reset_code(), Some(Code::ContractSpent));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_faster_than_its_blocks_waits_and_loses_nothing() {
    let network = Network::with(|config| config.contract_wait_ms = 20_000).await;
    let provider = network.provider().await;
    let proxy = network.member(Role::Proxy);
    let link = network.connect(&proxy).await.unwrap();
    let target = echo().await;
    let first = network.contract(&proxy, MB as u64);
    let (stream, _) = link.open(&provider.request(&first, target)).await.unwrap();
    let (mut read, mut write) = tokio::io::split(stream);
    let data: Vec<u8> = (0..3 * MB).map(|index| (index % 251) as u8).collect();
    let sent = data.clone();
    let writing = tokio::spawn(async move {
        write.write_all(&sent).await.unwrap();
        write.shutdown().await.unwrap();
    });
    let paying = async {
        let mut last = first.id;
        for _ in 0..6 {
            // The api takes its time; meanwhile what waits is within the window, and counts.
            tokio::time::sleep(Duration::from_millis(150)).await;
            let queued = network.status.borrow().queued_bytes;
            assert!(queued < 6 << 20, "{queued} bytes wait");
            let next = network.contract_after(&proxy, MB as u64 + 300_000, Some(last));
            last = next.id;
            link.show(&next);
        }
    };
    let mut received = Vec::new();
    let (all, ()) = tokio::join!(read.read_to_end(&mut received), paying);
    all.unwrap();
    writing.await.unwrap();
    assert!(received == data);
    network.until(|status| status.streams == 0 && status.queued_bytes == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_dies_resets_its_streams_and_refuses_new_ones_at_once() {
    let network = Network::start().await;
    let provider = network.provider().await;
    let proxy = network.member(Role::Proxy);
    let link = network.connect(&proxy).await.unwrap();
    let contract = network.contract(&proxy, 1 << 30);
    let target = echo().await;
    let (mut stream, _) = link.open(&provider.request(&contract, target)).await.unwrap();
    stream.write_all(b"x").await.unwrap();
    stream.read_u8().await.unwrap();
    provider.link.close();
    let error = stream.read_u8().await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    let began = tokio::time::Instant::now();
    let refused = link.open(&provider.request(&contract, target)).await.unwrap_err();
    assert_eq!(refused.code(), Some(Code::ProviderGone));
    assert!(began.elapsed() < Duration::from_secs(1));
}

/// An opener takes a contract that its relay refuses for spent, and asks for another: a provider that could say so would burn an
/// account's blocks one by one.
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_has_no_say_about_contracts() {
    let network = Network::start().await;
    let member = network.member(Role::Provider);
    let who = member.who();
    let (incoming, mut opens) = Opens::channel(who.epoch);
    let address = network.address.to_string();
    let _provider = Link::connect(&address, who, Some(incoming)).await.unwrap();
    let serving = tokio::spawn(async move {
        for code in [Code::ContractSpent, Code::ContractInvalid] {
            opens.recv().await.unwrap().unseal().unwrap().refuse(code, "", None);
            opens.recv().await.unwrap().unseal().unwrap().fail(code, "");
        }
    });
    let proxy = network.member(Role::Proxy);
    let link = network.connect(&proxy).await.unwrap();
    let contract = network.contract(&proxy, 1 << 30);
    let request = OpenRequest {
        provider: member.client,
        provider_epoch: 0,
        provider_key: member.identity.public().seal_key(),
        target: Target { host: Host::Name("example.org".into()), port: 443 },
        family: Family::Any,
        contract,
        deadline: Duration::from_secs(10),
        forward: false,
    };
    for _ in 0..4 {
        let error = link.open(&request).await.unwrap_err();
        assert!(matches!(error, OpenError::Refused { code: Code::ProtocolError, .. }), "{error:?}");
    }
    serving.await.unwrap();
}
