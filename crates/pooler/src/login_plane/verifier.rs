//! Deriving SCRAM verifiers from plain passwords, which costs milliseconds.

use super::hashing::aside;
use pgwire::scram::Verifier;
use pooling::seam::{DeriveVerifier, DerivedVerifier};
use settings::pooler::Secret;
use std::sync::Arc;

/// Without a verifier if the secret is no plain password or the iterations are out of bounds; neither passes the
/// configuration's check.
pub(super) async fn derive(request: DeriveVerifier) -> DerivedVerifier {
    let DeriveVerifier { client, user, secret, iterations, salt } = request;
    let verifier = match secret {
        Secret::Plain(password) => {
            let derived = aside(move || Verifier::derive(password.as_bytes(), &salt, iterations)).await;
            derived
                .map_err(|error| error.to_string())
                .and_then(|derived| derived.map_err(|error| error.to_string()))
        }
        Secret::Md5(_) | Secret::ScramVerifier(_) => Err("no plain password".to_owned()),
    };
    if let Err(error) = &verifier {
        tracing::error!(user, error, "cannot derive a SCRAM verifier");
    }
    DerivedVerifier { client, user, verifier: verifier.ok().map(Arc::new) }
}
