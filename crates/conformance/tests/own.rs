//! The kit against this project's own relay.
#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]

#[path = "../../relay/tests/support.rs"]
mod support;

use conformance::{Authority, Result, Subject};
use support::Network;
use trust::TokenKey;

async fn subject(network: &Network) -> Subject {
    let authority = Authority {
        network: network.network(),
        token_key: TokenKey::from_seed(network.token_key.seed()).unwrap(),
    };
    Subject { address: network.address.to_string(), authority }
}

#[tokio::test(flavor = "multi_thread")]
async fn our_relay_does_what_the_page_says() {
    let network = Network::start().await;
    let report = conformance::run(&subject(&network).await, |_| true).await;
    assert!(report.is_good(), "\n{report}");
    let skipped = report.outcomes.iter().filter(|outcome| matches!(outcome.result, Result::Skipped(_)));
    assert_eq!(skipped.count(), 0, "\n{report}");
    assert_eq!(report.outcomes.len(), conformance::checks().count());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_relay_fails_each_check() {
    let network = Network::start().await;
    let mut subject = subject(&network).await;
    subject.address = support::echo().await.to_string();
    let report = conformance::run(&subject, |number| number != 12).await;
    let failed = report.outcomes.iter().filter(|outcome| matches!(outcome.result, Result::Failed(_)));
    assert_eq!(failed.count(), report.outcomes.len(), "\n{report}");
    assert!(!report.is_good());
}
