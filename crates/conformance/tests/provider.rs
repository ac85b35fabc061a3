//! The kit against a provider made of this project's client library.
#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]

use client::{
    Code, Host, Identification, Link, LinkError, Opens, Pace, Phase, SealedOpen, SpliceLimits, Ways,
};
use clock::{Clock, unix_ms};
use conformance::provider::{Credentials, Running, Subject};
use conformance::{Authority, Result};
use link::Comeback;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use trust::{CertificateRole, Identity, Role, RootKey, TokenKey};

/// Ends its task.
struct Ends(JoinHandle<()>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn start(credentials: &Credentials) -> anyhow::Result<Running> {
    let who = Identification {
        network: credentials.network,
        client: credentials.client,
        role: Role::Provider,
        identity: Arc::new(Identity::from_secret(&credentials.secret)?),
        token: credentials.token.clone(),
        epoch: unix_ms(),
        software: "test 1".into(),
    };
    let keeping = tokio::spawn(keep(credentials.relay.clone(), who));
    Ok(Box::new(Ends(keeping)))
}

/// What the documentation of `client` says that a provider does.
async fn keep(relay: String, who: Identification) {
    let (incoming, opens) = Opens::channel(who.epoch);
    let _serving = Ends(tokio::spawn(serve(opens)));
    let (ways, clock, mut comeback) = (Ways::default(), Clock::start(), Comeback::new());
    let mut draining: Vec<Link> = Vec::new();
    loop {
        let dialled =
            Link::connect_by(&relay, who.clone(), Some(incoming.clone()), Arc::default(), &ways).await;
        let ended = match dialled {
            Ok(link) => {
                comeback.set_pace(Pace::from(link.welcome()));
                comeback.connected(clock.now());
                let mut phase = link.phase();
                let next = phase.wait_for(|phase| !matches!(phase, Phase::Up)).await;
                match next.map(|phase| phase.clone()) {
                    Ok(Phase::Draining { spread, .. }) => {
                        draining.push(link);
                        let spread_ms = u64::try_from(spread.as_millis()).unwrap();
                        tokio::time::sleep(Duration::from_millis(spread_ms / 2)).await;
                        continue;
                    }
                    Ok(Phase::Ended(error)) => error,
                    _ => LinkError::Closed,
                }
            }
            Err(error) => error,
        };
        if ended.is_final() {
            return std::future::pending().await;
        }
        tokio::time::sleep(comeback.ended(ended.retry_after(), unix_ms() * 7_919, clock.now())).await;
    }
}

async fn serve(mut opens: mpsc::Receiver<SealedOpen>) {
    while let Some(open) = opens.recv().await {
        tokio::spawn(async move {
            let Some(open) = open.unseal() else { return };
            let Host::Address(address) = open.target().host else {
                return open.fail(Code::Policy, "names");
            };
            match TcpStream::connect((address, open.target().port)).await {
                Ok(socket) => {
                    if let Ok(stream) = open.accept(address) {
                        stream.splice(socket, &[], SpliceLimits::default()).await;
                    }
                }
                Err(_) => open.fail(Code::TargetRefused, "nobody listens there"),
            }
        });
    }
}

async fn subject(start: impl Fn(&Credentials) -> anyhow::Result<Running> + Send + Sync + 'static) -> Subject {
    let root = RootKey::generate().unwrap();
    let certificate = root.issue(CertificateRole::Relay, &["127.0.0.1".to_owned()], unix_ms()).unwrap();
    Subject {
        authority: Authority { network: root.network(), token_key: TokenKey::generate().unwrap() },
        listener: TcpListener::bind("127.0.0.1:0").await.unwrap(),
        certificate,
        start: Box::new(start),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn our_provider_does_what_the_page_says() {
    let report = conformance::provider::run(&subject(start).await, |_| true).await.unwrap();
    assert!(report.is_good(), "\n{report}");
    assert!(report.outcomes.iter().all(|outcome| outcome.result == Result::Passed), "\n{report}");
    assert_eq!(report.outcomes.len(), conformance::provider::checks().count());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_dials_on_a_fixed_timer_is_found_out() {
    // It says nothing right, and stays away for nobody.
    let careless = |credentials: &Credentials| -> anyhow::Result<Running> {
        let relay = credentials.relay.clone();
        Ok(Box::new(Ends(tokio::spawn(async move {
            loop {
                drop(TcpStream::connect(&relay).await);
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }))))
    };
    let report = conformance::provider::run(&subject(careless).await, |_| true).await.unwrap();
    assert!(report.outcomes.iter().all(|outcome| matches!(outcome.result, Result::Failed(_))), "\n{report}");
}

#[test]
fn numbers_stay_in_order_and_none_comes_twice() {
    let relay = conformance::checks();
    let numbers: Vec<u16> = relay.chain(conformance::provider::checks()).map(|check| check.number).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
}
