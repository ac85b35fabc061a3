use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use selection::Country;
use selection::pool::Member;
use trust::api::{ContractAnswer, ContractRequest, ExitsRequest, PoolsAnswer, ProxyLogin};
use trust::{BlobHash, ContractId, Identity, KeyRing};
use uuid::Uuid;

use super::*;
use crate::fixtures::Pools;

/// A network of which an answer shows at most so many.
#[derive(Default)]
struct Network {
    candidates: Mutex<Vec<trust::api::Candidate>>,
    shows: usize,
    silent: AtomicBool,
    stale: AtomicBool,
    hanging: AtomicBool,
    asked: AtomicU64,
    pools: Mutex<Pools>,
    pools_asked: AtomicU64,
    blobs_asked: AtomicU64,
}

impl Control for Network {
    async fn login(&self, _: &str) -> Result<Option<ProxyLogin>, ControlError> {
        Ok(None)
    }

    async fn contract(&self, _: &ContractRequest) -> Result<ContractAnswer, ControlError> {
        Err(ControlError::Silent(String::new()))
    }

    async fn close_contract(&self, _: ContractId) -> Result<(), ControlError> {
        Ok(())
    }

    async fn candidates(&self, query: CandidatesQuery<'_>) -> Result<CandidatesAnswer, ControlError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if self.hanging.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        if self.silent.load(Ordering::Relaxed) {
            return Err(ControlError::Silent("nobody".into()));
        }
        let mut candidates = self.candidates.lock().unwrap().clone();
        candidates.retain(|candidate| {
            query.provider.is_none_or(|wanted| wanted.0 == candidate.provider)
                && query.country.is_none_or(|wanted| candidate.country.as_deref() == Some(wanted))
        });
        let connected = candidates.len() as u64;
        candidates.truncate(self.shows);
        let stale = self.stale.load(Ordering::Relaxed);
        Ok(CandidatesAnswer { candidates, connected, stale, ..CandidatesAnswer::default() })
    }

    async fn pools(&self, tag: Option<&str>) -> Result<Option<(PoolsAnswer, String)>, ControlError> {
        self.pools_asked.fetch_add(1, Ordering::Relaxed);
        if self.silent.load(Ordering::Relaxed) {
            return Err(ControlError::Silent("nobody".into()));
        }
        self.pools.lock().unwrap().answer(tag)
    }

    async fn pool(&self, hash: BlobHash) -> Result<Vec<u8>, ControlError> {
        self.blobs_asked.fetch_add(1, Ordering::Relaxed);
        if self.silent.load(Ordering::Relaxed) {
            return Err(ControlError::Silent("nobody".into()));
        }
        self.pools.lock().unwrap().bytes(hash)
    }

    fn key_ring(&self) -> Arc<KeyRing> {
        self.pools.lock().unwrap().ring()
    }

    async fn renew_key_ring(&self) -> Result<(), ControlError> {
        Ok(())
    }

    async fn report_exits(&self, _: &ExitsRequest) -> Result<(), ControlError> {
        Ok(())
    }
}

fn candidate(id: u128, country: &str, epoch: u64) -> trust::api::Candidate {
    trust::api::Candidate {
        provider: Uuid::from_u128(id),
        epoch,
        identity: Identity::generate().unwrap().public().to_string(),
        relay: format!("relay-{epoch}:443"),
        country: Some(country.into()),
        connected_at_ms: epoch,
        seen_at_ms: epoch,
    }
}

fn directory(shows: usize, candidates: Vec<trust::api::Candidate>) -> (Directory<Network>, Arc<Network>) {
    let network = Arc::new(Network { candidates: Mutex::new(candidates), shows, ..Network::default() });
    (Directory::new(Arc::clone(&network), Clock::start(), 1, None), network)
}

async fn pick(directory: &Directory<Network>, options: &str) -> Result<Arc<Provider>, NoCandidate> {
    let options = Arc::new(Options::parse(options).unwrap());
    let mut search = directory.search("acme", &options, "example.org:443").await;
    let (pick, provider) = directory.pick(&mut search).await?;
    directory.opened(&search, &pick);
    directory.closed(&pick);
    Ok(provider)
}

#[tokio::test]
async fn the_first_customer_waits_for_the_list_and_the_next_ones_do_not() {
    let (directory, network) = directory(200, vec![candidate(1, "de", 1)]);
    for _ in 0..50 {
        assert_eq!(pick(&directory, "").await.unwrap().candidate.provider.as_u128(), 1);
    }
    assert_eq!(network.asked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn customers_who_wait_for_the_list_wait_for_one_answer() {
    let (directory, network) = directory(200, vec![candidate(1, "de", 1)]);
    let directory = Arc::new(directory);
    let waiting: Vec<_> = (0..100)
        .map(|_| {
            let directory = Arc::clone(&directory);
            tokio::spawn(async move { pick(&directory, "").await.is_ok() })
        })
        .collect();
    for waiter in waiting {
        assert!(waiter.await.unwrap());
    }
    assert_eq!(network.asked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn what_an_answer_has_no_room_for_is_asked_for_by_country_and_by_provider() {
    let mut candidates: Vec<_> = (1..=20).map(|id| candidate(id, "de", 1)).collect();
    candidates.push(candidate(99, "at", 1));
    let (directory, _) = directory(5, candidates);
    assert!(pick(&directory, "").await.is_ok());
    assert_eq!(pick(&directory, "country-at").await.unwrap().candidate.provider.as_u128(), 99);
    let named = format!("provider-{:032x}", 17);
    assert_eq!(pick(&directory, &named).await.unwrap().candidate.provider.as_u128(), 17);
    assert_eq!(pick(&directory, "country-fr").await.unwrap_err(), NoCandidate::NoneKnown);
    // A list of a part says nothing about the rest.
    directory.refresh().await;
    assert!(pick(&directory, &named).await.is_ok());
}

#[tokio::test]
async fn who_has_left_is_left_out_and_who_comes_back_is_taken_with_the_new_relay() {
    let (directory, network) = directory(200, vec![candidate(1, "de", 1), candidate(2, "de", 1)]);
    assert!(pick(&directory, "").await.is_ok());
    *network.candidates.lock().unwrap() = vec![candidate(2, "de", 7)];
    directory.refresh().await;
    assert_eq!(directory.len(), 1);
    assert_eq!(&*pick(&directory, "").await.unwrap().relay, "relay-7:443");
}

#[tokio::test]
async fn without_an_answer_the_list_stays() {
    let (directory, network) = directory(200, vec![candidate(1, "de", 1)]);
    assert!(pick(&directory, "").await.is_ok());
    network.silent.store(true, Ordering::Relaxed);
    for _ in 0..5 {
        directory.refresh().await;
        assert!(pick(&directory, "").await.is_ok());
    }
}

#[tokio::test]
async fn a_candidate_that_makes_no_sense_is_left_out() {
    let nonsense = trust::api::Candidate { identity: "x".into(), ..candidate(1, "de", 1) };
    let (directory, _) = directory(200, vec![nonsense, candidate(2, "", 1)]);
    assert_eq!(pick(&directory, "").await.unwrap().candidate.country, Country::UNKNOWN);
    assert_eq!(directory.len(), 1);
}

#[tokio::test]
async fn the_number_of_windows_is_bounded() {
    let (directory, _) = directory(200, vec![candidate(1, "de", 1)]);
    for id in 0..400 {
        let _ = pick(&directory, &format!("provider-{id:032x}")).await;
    }
    assert!(directory.lock().due(false, directory.clock.now()).len() <= 257);
}

/// The api hangs, and each customer wants another part of the network.
#[tokio::test]
async fn nobody_waits_for_the_questions_of_others_without_end() {
    let (directory, network) = directory(200, vec![candidate(1, "de", 1)]);
    pick(&directory, "").await.unwrap();
    network.hanging.store(true, Ordering::Relaxed);
    let directory = Arc::new(directory);
    let begun = tokio::time::Instant::now();
    let mut searches = tokio::task::JoinSet::new();
    for country in ["at", "ch", "fr", "it", "pl", "cz", "nl", "be"] {
        let directory = Arc::clone(&directory);
        searches.spawn(async move {
            let options = format!("country-{country}");
            drop(pick(&directory, &options).await);
        });
    }
    searches.join_all().await;
    assert!(begun.elapsed() < 3 * WINDOW_WAIT, "{:?}", begun.elapsed());
}

fn member(id: u128, country: &str, epoch: u64) -> Member {
    Member {
        provider: Uuid::from_u128(id),
        epoch,
        connected_at_ms: epoch,
        relay: format!("relay-{epoch}:443").into(),
        country: Country::parse(country).unwrap_or(Country::UNKNOWN),
        verified: false,
        identity: *Identity::generate().unwrap().public().bytes(),
    }
}

/// A directory of a network with a generation of pools, and a folder to keep it in.
fn with_pools(members: &[Member]) -> (Directory<Network>, Arc<Network>, std::path::PathBuf) {
    let network = Arc::new(Network { shows: 200, ..Network::default() });
    network.pools.lock().unwrap().publish(members);
    let folder = std::env::temp_dir().join(format!("holdfast-pools-{}", Uuid::now_v7().simple()));
    (again(&network, &folder), network, folder)
}

fn again(network: &Arc<Network>, folder: &std::path::Path) -> Directory<Network> {
    Directory::new(Arc::clone(network), Clock::start(), 1, Some(Shelf::new(folder)))
}

#[tokio::test]
async fn with_a_generation_the_api_is_not_asked_for_candidates_and_nothing_is_read_twice() {
    let (directory, network, folder) = with_pools(&[member(1, "de", 1), member(2, "at", 1)]);
    directory.refresh().await;
    for country in ["", "country-de", "country-at", "country-de"] {
        assert!(pick(&directory, country).await.is_ok(), "{country}");
    }
    for _ in 0..20 {
        directory.kept.lock().unwrap().set_due();
        directory.refresh().await;
    }
    assert_eq!(network.asked.load(Ordering::Relaxed), 0);
    assert_eq!(network.pools_asked.load(Ordering::Relaxed), 21);
    // The best, and the two countries that were asked for.
    assert_eq!(network.blobs_asked.load(Ordering::Relaxed), 3);
    // A newer one: of three pools one has changed, besides the best.
    let (one, mut two) = (member(1, "de", 1), member(2, "at", 7));
    two.relay = "relay-7:443".into();
    network.pools.lock().unwrap().publish(&[one.clone(), two.clone()]);
    directory.kept.lock().unwrap().set_due();
    directory.refresh().await;
    assert_eq!(&*pick(&directory, "country-at").await.unwrap().relay, "relay-7:443");
    network.pools.lock().unwrap().publish(&[one]);
    directory.kept.lock().unwrap().set_due();
    directory.refresh().await;
    assert_eq!(directory.len(), 1, "who has left is left out");
    let _ = std::fs::remove_dir_all(folder);
}

/// Pools are built every few seconds: who has come since is in none of them yet.
#[tokio::test]
async fn when_all_that_pools_show_have_failed_the_api_is_asked_who_else_there_is() {
    let (directory, network, folder) = with_pools(&[member(1, "de", 1)]);
    directory.refresh().await;
    network.candidates.lock().unwrap().push(candidate(2, "de", 3));
    let options = Arc::new(Options::parse("").unwrap());
    let mut search = directory.search("account", &options, "example.test:443").await;
    let (found, _) = directory.pick(&mut search).await.unwrap();
    directory.failed(&search, &found, Fault::Gone);
    assert!(directory.pick(&mut search).await.is_err());
    assert_eq!(network.asked.load(Ordering::Relaxed), 0);
    directory.refresh().await;
    assert_eq!(network.asked.load(Ordering::Relaxed), 1);
    assert_eq!(pick(&directory, "").await.unwrap().candidate.provider.as_u128(), 2);
    let _ = std::fs::remove_dir_all(folder);
}

#[tokio::test]
async fn a_provider_that_no_pool_shows_is_still_asked_for_by_its_name() {
    let (directory, network, folder) = with_pools(&[member(1, "de", 1)]);
    network.candidates.lock().unwrap().push(candidate(17, "fr", 3));
    directory.refresh().await;
    let named = format!("provider-{:032x}", 17);
    assert_eq!(pick(&directory, &named).await.unwrap().candidate.provider.as_u128(), 17);
    let listed = format!("provider-{:032x}", 1);
    assert_eq!(pick(&directory, &listed).await.unwrap().candidate.provider.as_u128(), 1);
    assert_eq!(network.asked.load(Ordering::Relaxed), 1);
    let _ = std::fs::remove_dir_all(folder);
}

#[tokio::test]
async fn what_was_kept_serves_a_start_without_the_api_if_the_network_has_signed_it() {
    let (directory, network, folder) = with_pools(&[member(1, "de", 1), member(2, "at", 1)]);
    directory.refresh().await;
    assert!(pick(&directory, "country-at").await.is_ok());
    directory.write_now();
    network.silent.store(true, Ordering::Relaxed);
    let started = again(&network, &folder);
    started.restore_pools().await;
    assert_eq!(pick(&started, "country-at").await.unwrap().candidate.provider.as_u128(), 2);
    assert_eq!(pick(&started, "country-fr").await.unwrap_err(), NoCandidate::NoneKnown);
    // Another network's keys.
    network.pools.lock().unwrap().key = trust::TokenKey::generate().unwrap();
    let stranger = again(&network, &folder);
    stranger.restore_pools().await;
    assert_eq!(pick(&stranger, "").await.unwrap_err(), NoCandidate::NoneKnown);
    let _ = std::fs::remove_dir_all(folder);
}

#[tokio::test]
async fn a_generation_that_nobody_vouches_for_is_used_and_known_to_be_stale() {
    let (directory, network, folder) = with_pools(&[member(1, "de", 1)]);
    assert!(directory.refresh_pools().await);
    {
        let mut pools = network.pools.lock().unwrap();
        let answer = pools.answer.as_mut().unwrap();
        (answer.stale, answer.cause) = (true, Some("0 of 1 relays beat".into()));
    }
    directory.kept.lock().unwrap().set_due();
    assert!(!directory.refresh_pools().await, "stale");
    assert!(pick(&directory, "").await.is_ok(), "and used all the same");
    // What the api then says of its own beside it is believed as well.
    network.candidates.lock().unwrap().push(candidate(2, "de", 3));
    directory.refresh().await;
    assert_eq!(directory.len(), 2);
    // But not its own last good list: it would add up to the whole network.
    network.stale.store(true, Ordering::Relaxed);
    network.candidates.lock().unwrap().push(candidate(3, "de", 3));
    directory.refresh().await;
    assert_eq!(directory.len(), 2);
    let _ = std::fs::remove_dir_all(folder);
}

#[tokio::test]
async fn a_pool_with_other_bytes_than_were_named_and_an_older_generation_are_not_taken() {
    let (directory, network, folder) = with_pools(&[member(1, "de", 1)]);
    directory.refresh().await;
    let first = network.pools.lock().unwrap().answer.clone();
    let other = selection::pool::encode(&[&member(9, "de", 9)]);
    {
        let mut pools = network.pools.lock().unwrap();
        pools.publish(&[member(2, "de", 2)]);
        pools.blobs.values_mut().for_each(|bytes| *bytes = other.clone());
    }
    directory.kept.lock().unwrap().set_due();
    directory.refresh().await;
    assert_eq!(pick(&directory, "").await.unwrap().candidate.provider.as_u128(), 1, "the last good one");
    network.pools.lock().unwrap().publish(&[member(3, "de", 3)]);
    directory.kept.lock().unwrap().set_due();
    directory.refresh().await;
    assert_eq!(pick(&directory, "").await.unwrap().candidate.provider.as_u128(), 3);
    network.pools.lock().unwrap().answer = first;
    directory.kept.lock().unwrap().set_due();
    directory.refresh().await;
    assert_eq!(pick(&directory, "").await.unwrap().candidate.provider.as_u128(), 3);
    let _ = std::fs::remove_dir_all(folder);
}

/// Resident memory of this process, bytes.
fn resident() -> usize {
    let told = std::fs::read_to_string("/proc/self/statm").unwrap();
    told.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4_096
}

#[tokio::test]
async fn a_proxy_that_knows_75_000_providers_needs_less_than_a_kilobyte_for_each() {
    const MANY: usize = 75_000;
    let identity = *Identity::generate().unwrap().public().bytes();
    let countries = ["de", "fr", "at", "us", "pl"];
    let members: Vec<_> = (0..MANY as u128)
        .map(|id| Member {
            provider: Uuid::from_u128(id << 64 | id),
            epoch: 1,
            connected_at_ms: 1,
            relay: format!("relay-{}.example.org:443", id % 32).into(),
            country: Country::parse(countries[id as usize % countries.len()]).unwrap(),
            verified: false,
            identity,
        })
        .collect();
    let (directory, _network, folder) = with_pools(&members);
    let before = resident();
    directory.refresh().await;
    for country in countries {
        assert!(pick(&directory, &format!("country-{country}")).await.is_ok());
    }
    assert_eq!(directory.len(), MANY);
    let each = resident().saturating_sub(before) / MANY;
    assert!(each < 1_000, "{each} bytes for each provider");
    let _ = std::fs::remove_dir_all(folder);
}

/// The first generation of a new network is empty, and the next one a few seconds away.
#[tokio::test]
async fn while_no_pool_lists_anybody_the_api_is_asked() {
    let (directory, network, folder) = with_pools(&[]);
    directory.refresh().await;
    network.candidates.lock().unwrap().push(candidate(4, "de", 3));
    assert_eq!(pick(&directory, "").await.unwrap_err(), NoCandidate::NoneKnown);
    directory.refresh().await;
    assert_eq!(pick(&directory, "").await.unwrap().candidate.provider.as_u128(), 4);
    let _ = std::fs::remove_dir_all(folder);
}
