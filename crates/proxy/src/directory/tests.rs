use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use trust::ContractId;
use trust::Identity;
use trust::api::{ContractAnswer, ContractRequest, ExitsRequest, ProxyLogin};

use super::*;

/// A network of which an answer shows at most so many.
#[derive(Default)]
struct Network {
    candidates: Mutex<Vec<trust::api::Candidate>>,
    shows: usize,
    silent: AtomicBool,
    hanging: AtomicBool,
    asked: AtomicU64,
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
        Ok(CandidatesAnswer { candidates, connected, registered: connected, ..CandidatesAnswer::default() })
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
    (Directory::new(Arc::clone(&network), Clock::start(), 1), network)
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
    assert!(directory.lock().windows.due(directory.clock.now()).len() <= 257);
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
