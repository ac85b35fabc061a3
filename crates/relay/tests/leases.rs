//! Leases of sessions: what ends one, and what does not.
#![allow(missing_docs)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[path = "support.rs"]
mod support;

use client::LinkError;
use link::Code;
use membership::lease::{Cause, Leases, Refusal};
use relay::Keys;
use std::sync::Arc;
use std::time::Duration;
use support::{Member, Network};

/// What the shared reader has heard of this client.
fn hear(network: &Network, member: &Member, cause: Option<Cause>) {
    let known = Arc::clone(&network.keys.borrow());
    let mut leases = Leases::clone(&known.leases);
    let refusal = cause.map(|cause| Refusal { cause, until_ms: u64::MAX });
    leases.answer_changes([(member.client, refusal)], 1);
    network.keys.send_replace(Arc::new(Keys { leases: Arc::new(leases), ..Keys::clone(&known) }));
}

fn refusal(error: &LinkError) -> (Code, &str, Option<Duration>) {
    match error {
        LinkError::Refused { code, cause, retry_after } => (*code, cause, *retry_after),
        other => panic!("{other}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definite_refusal_ends_the_sessions_of_its_client_with_its_cause_and_no_others() {
    let network = Network::start().await;
    let cases = [
        (Cause::Disabled, Code::Revoked, "disabled by its owner"),
        (Cause::Revoked, Code::Revoked, "revoked"),
        (Cause::AccountDisabled, Code::AccountDisabled, "the account"),
    ];
    for (cause, code, text) in cases {
        let (refused, bystander) = (network.provider().await, network.provider().await);
        hear(&network, &refused.member, Some(cause));
        let ended =
            tokio::time::timeout(Duration::from_secs(10), refused.link.ended()).await.expect("it ends");
        let (said, why, retry_after) = refusal(&ended);
        assert_eq!(said, code);
        assert!(why.contains(text), "{why}");
        // An account may be enabled again: its clients come back by themselves, and not at once.
        assert_eq!(retry_after.is_some(), !code.is_final());
        let again = network.connect(&refused.member).await.unwrap_err();
        let (said_at_the_door, why_at_the_door, _) = refusal(&again);
        assert_eq!((said_at_the_door, why_at_the_door), (said, why));
        assert!(bystander.link.is_up());
        hear(&network, &refused.member, None);
        assert!(network.connect(&refused.member).await.is_ok(), "in good standing again");
    }
}

/// An unanswered check used to close the connection: millions of providers were dropped so.
#[tokio::test(flavor = "multi_thread")]
async fn hearing_nothing_and_hearing_the_same_again_end_no_session() {
    let network = Network::start().await;
    let mut providers = Vec::new();
    for _ in 0..20 {
        providers.push(network.provider().await);
    }
    let refused = network.provider().await;
    hear(&network, &refused.member, Some(Cause::Disabled));
    for _ in 0..50 {
        let known = Arc::clone(&network.keys.borrow());
        network.keys.send_replace(known);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(providers.iter().all(|provider| provider.link.is_up()));
    network.until(|status| status.providers == 20).await;
}
