//! Providers that fail, an api that is gone, contracts, records.

use std::sync::atomic::Ordering;
use std::time::Duration;

use proxy::exits::ExitError;
use selection::pool::Member;
use selection::{Country, Fault};
use tokio::io::AsyncWriteExt;
use tokio::time::Instant;
use trust::api::ErrorCode;
use uuid::Uuid;

use crate::support::{candidate, echo, refusal, soon, start, start_on, start_with};
use crate::wire::{ask, request, stream, take, works};

const ONE: Uuid = Uuid::from_u128(1);

fn gone() -> ExitError {
    ExitError::Provider(Fault::Gone, "not connected here".into())
}

#[tokio::test]
async fn when_a_provider_stops_new_streams_go_through_another_at_once() {
    let target = echo().await;
    let proxy = start(&[target]).await;
    proxy.providers.break_down(ONE, gone());
    let began = Instant::now();
    for _ in 0..30 {
        works(&mut stream(proxy.address, "acme-country-de", target).await).await;
    }
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    let asked = proxy.providers.asked();
    assert!(asked.iter().filter(|provider| **provider == ONE).count() <= 1, "it was asked again: {asked:?}");
}

#[tokio::test]
async fn a_provider_that_does_not_answer_costs_one_customer_its_patience() {
    let target = echo().await;
    let proxy = start(&[target]).await;
    proxy.providers.hanging.lock().unwrap().insert(ONE);
    let mut slow = 0;
    for _ in 0..12 {
        let began = Instant::now();
        works(&mut stream(proxy.address, "acme-country-de", target).await).await;
        slow += u32::from(began.elapsed() > Duration::from_secs(2));
    }
    assert!(slow <= 2, "{slow} of 12 waited");
}

#[tokio::test]
async fn with_no_provider_left_the_cause_is_told_and_no_storm_begins() {
    let target = echo().await;
    let proxy = start(&[target]).await;
    for id in 1..=3 {
        let broken = ExitError::Provider(Fault::Failed, "broken".into());
        proxy.providers.break_down(Uuid::from_u128(id), broken);
    }
    for _ in 0..40 {
        assert!(matches!(ask(proxy.address, "acme", &request(1, target)).await.0, 3 | 4));
    }
    let asked = proxy.providers.asked().len();
    assert!(asked <= 12, "{asked} attempts for 40 opens");
}

#[tokio::test]
async fn a_new_provider_is_found_and_one_that_left_the_list_is_not_asked() {
    let target = echo().await;
    let proxy = start(&[target]).await;
    works(&mut stream(proxy.address, "acme", target).await).await;
    proxy.api.with(|api| api.candidates = vec![candidate(9, "FR")]);
    tokio::time::sleep(Duration::from_millis(600)).await;
    let before = proxy.providers.asked().len();
    for _ in 0..10 {
        works(&mut stream(proxy.address, "acme", target).await).await;
    }
    let asked = proxy.providers.asked().split_off(before);
    assert!(asked.iter().all(|provider| provider.as_u128() == 9), "{asked:?}");
}

#[tokio::test]
async fn with_the_api_gone_known_customers_go_on() {
    let target = echo().await;
    let proxy = start(&[target]).await;
    let mut before = stream(proxy.address, "acme", target).await;
    proxy.api.with(|api| api.silent = true);
    tokio::time::sleep(Duration::from_millis(600)).await;
    works(&mut before).await;
    for _ in 0..20 {
        works(&mut stream(proxy.address, "acme", target).await).await;
    }
}

#[tokio::test]
async fn a_session_keeps_its_provider_and_a_hard_one_is_refused_without_it() {
    let target = echo().await;
    let proxy = start(&[target]).await;
    for _ in 0..10 {
        drop(stream(proxy.address, "acme-session-cart", target).await);
    }
    let asked = proxy.providers.asked();
    assert!(asked.iter().all(|provider| *provider == asked[0]), "{asked:?}");
    let hard = "acme-session-bank-sticky-hard";
    drop(stream(proxy.address, hard, target).await);
    let pinned = *proxy.providers.asked().last().unwrap();
    proxy.api.with(|api| api.candidates.retain(|candidate| candidate.provider != pinned));
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(ask(proxy.address, hard, &request(1, target)).await.0, 4);
    assert_eq!(ask(proxy.address, "acme-session-other", &request(1, target)).await.0, 0);
}

#[tokio::test]
async fn the_next_block_is_asked_for_beside_the_stream_and_goes_on_for_the_last() {
    let target = echo().await;
    let proxy = start_with(&[target], |_, api| api.block_bytes = 100_000).await;
    let mut socket = stream(proxy.address, "acme", target).await;
    for _ in 0..40 {
        socket.write_all(&[1; 1_000]).await.unwrap();
        take::<1_000>(&mut socket).await;
    }
    // 80,000 bytes in both directions: more than half of the first block.
    soon("the second contract", || proxy.api.with(|api| api.opened.len() == 2)).await;
    let (first, second) = proxy.api.with(|api| (api.opened[0].clone(), api.opened[1].clone()));
    assert_eq!((second.0.previous, second.0.proxy_account.as_deref()), (Some(first.1), Some("acme")));
    soon("the second contract at the relay", || !proxy.providers.shown.lock().unwrap().is_empty()).await;
    let shown = proxy.providers.shown.lock().unwrap()[0].clone();
    assert_eq!((shown.id.0, shown.follows.unwrap().0), (second.1, first.1));
    works(&mut socket).await;
    drop(socket);
    soon("the end of the first contract", || proxy.api.with(|api| api.closed == [first.1])).await;
}

#[tokio::test]
async fn many_streams_share_one_contract_and_no_open_waits_for_the_api() {
    let target = echo().await;
    let proxy = start(&[target]).await;
    for _ in 0..100 {
        works(&mut stream(proxy.address, "acme", target).await).await;
    }
    assert_eq!(proxy.api.contracts_asked.load(Ordering::Relaxed), 1);
    assert_eq!(proxy.api.logins_asked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn out_of_grant_the_block_is_finished_and_then_opens_are_refused() {
    let target = echo().await;
    let proxy = start_with(&[target], |_, api| api.block_bytes = 20_000).await;
    let mut socket = stream(proxy.address, "acme", target).await;
    proxy.api.with(|api| api.refusal = Some(refusal(ErrorCode::GrantSpent, "nothing is left")));
    for _ in 0..8 {
        socket.write_all(&[1; 1_000]).await.unwrap();
        take::<1_000>(&mut socket).await;
    }
    assert_eq!(ask(proxy.address, "acme", &request(1, target)).await.0, 0, "the block has bytes");
    for _ in 0..4 {
        socket.write_all(&[1; 1_000]).await.unwrap();
        take::<1_000>(&mut socket).await;
    }
    let asked = proxy.api.contracts_asked.load(Ordering::Relaxed);
    for _ in 0..20 {
        assert_eq!(ask(proxy.address, "acme", &request(1, target)).await.0, 2, "and then no more");
    }
    let asked = proxy.api.contracts_asked.load(Ordering::Relaxed) - asked;
    assert!(asked <= 2, "the refusal is remembered, not asked for {asked} times");
}

#[tokio::test]
async fn each_stream_leaves_a_record_without_its_target() {
    let target = echo().await;
    let folder = std::env::temp_dir().join(format!("holdfast-proxy-{}", Uuid::now_v7().simple()));
    let proxy = start_with(&[target], |config, _| config.abuse.folder = Some(folder.clone())).await;
    works(&mut stream(proxy.address, "acme-country-at", target).await).await;
    soon("the record", || proxy.api.with(|api| api.exits.len() == 1)).await;
    let exit = proxy.api.with(|api| api.exits[0].clone());
    assert_eq!((exit.proxy_account.as_str(), exit.provider.as_u128(), exit.port), ("acme", 3, target.port()));
    assert!(exit.opened_at_ms > 0 && exit.closed_at_ms >= exit.opened_at_ms);
    let file = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    let written = std::fs::read_to_string(file).unwrap();
    assert!(written.contains("\"acme\"") && !written.contains("127.0.0.1"), "{written}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn at_a_stop_streams_have_their_time_and_contracts_are_given_back() {
    let target = echo().await;
    let proxy = start(&[target]).await;
    let mut socket = stream(proxy.address, "acme", target).await;
    let (address, api) = (proxy.address, std::sync::Arc::clone(&proxy.api));
    let stopping = tokio::spawn(proxy.stop());
    tokio::time::sleep(Duration::from_millis(200)).await;
    works(&mut socket).await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err(), "it takes new customers");
    drop(socket);
    let drained = tokio::time::timeout(Duration::from_secs(5), stopping).await;
    drained.unwrap().unwrap();
    assert_eq!(api.with(|api| (api.opened.len(), api.closed.len())), (1, 1));
}

#[tokio::test]
async fn with_the_api_gone_a_restarted_proxy_serves_those_whom_it_knew() {
    let target = echo().await;
    let file = std::env::temp_dir().join(format!("holdfast-known-{}.json", Uuid::now_v7().simple()));
    let first = start(&[target]).await;
    let (config, api) = (first.config.clone(), std::sync::Arc::clone(&first.api));
    first.stop().await;
    let before = start_on(config.clone(), std::sync::Arc::clone(&api), Some(file.clone())).await;
    works(&mut stream(before.address, "acme-country-at", target).await).await;
    api.with(|api| api.silent = true);
    tokio::time::sleep(Duration::from_millis(600)).await;
    before.stop().await;
    let kept = std::fs::read_to_string(&file).unwrap();
    assert!(!kept.contains(crate::support::SECRET), "a password is written down");
    let after = start_on(config.clone(), std::sync::Arc::clone(&api), Some(file.clone())).await;
    for _ in 0..5 {
        works(&mut stream(after.address, "acme-country-at", target).await).await;
    }
    // With the api there, a stop gives the block back, and it is not used again.
    api.with(|api| api.silent = false);
    tokio::time::sleep(Duration::from_millis(600)).await;
    after.stop().await;
    let contracts = api.with(|api| (api.opened.len(), api.closed.len()));
    assert_eq!(contracts, (1, 1));
    let again = start_on(config, std::sync::Arc::clone(&api), Some(file.clone())).await;
    works(&mut stream(again.address, "acme", target).await).await;
    assert_eq!(api.with(|api| api.opened.len()), 2);
    again.stop().await;
    std::fs::remove_file(file).unwrap();
}

/// The worker that builds lists is gone, and most of those who stand in the last one have left since.
#[tokio::test]
async fn the_last_good_list_is_never_a_list_of_the_dead() {
    let target = echo().await;
    let proxy = start(&[target]).await;
    let member = |id: u128| Member {
        provider: Uuid::from_u128(id),
        epoch: 1,
        connected_at_ms: 1,
        relay: "relay:443".into(),
        country: Country::parse("fr").unwrap(),
        verified: false,
        identity: [3; 64],
    };
    let members: Vec<_> = (100..115).map(member).collect();
    proxy.api.with(|api| api.candidates.clear());
    proxy.api.pools.lock().unwrap().publish(&members);
    for id in 100..112 {
        proxy.providers.break_down(Uuid::from_u128(id), gone());
    }
    soon("the list", || proxy.api.pools.lock().unwrap().read >= 1).await;
    let mut in_a_row = 0;
    for _ in 0..200 {
        let (code, _) = ask(proxy.address, "acme-country-fr", &request(1, target)).await;
        in_a_row = if code == 0 { in_a_row + 1 } else { 0 };
        if in_a_row == 30 {
            break;
        }
    }
    assert_eq!(in_a_row, 30, "opens go on failing");
    let asked = proxy.providers.asked();
    for id in 100..112 {
        let times = asked.iter().filter(|provider| provider.as_u128() == id).count();
        assert!(times <= 3, "provider {id}, which is gone, was asked {times} times");
    }
}

/// A proxy that was killed in its first half minute knew nobody at its next start.
#[tokio::test]
async fn what_is_known_is_on_the_disk_within_seconds() {
    let target = echo().await;
    let file = std::env::temp_dir().join(format!("holdfast-soon-{}.json", Uuid::now_v7().simple()));
    let first = start(&[target]).await;
    let (config, api) = (first.config.clone(), std::sync::Arc::clone(&first.api));
    first.stop().await;
    let proxy = start_on(config, api, Some(file.clone())).await;
    works(&mut stream(proxy.address, "acme", target).await).await;
    soon("the login on the disk", || {
        std::fs::read_to_string(&file).is_ok_and(|kept| kept.contains("\"acme\"") && kept.contains("signed"))
    })
    .await;
    proxy.stop().await;
    std::fs::remove_file(file).unwrap();
}
