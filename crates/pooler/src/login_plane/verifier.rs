//! Deriving SCRAM verifiers from plain passwords, which costs milliseconds.

use super::hashing::aside;
use pgwire::scram::Verifier;
use pooling::seam::{DeriveVerifier, DerivedVerifier};
use settings::pooler::Secret;
use std::sync::Arc;

/// `None` if the secret is no plain password or the iterations are out of bounds: neither passes the configuration's
/// check, and the client's login then runs into its time limit.
pub(super) async fn derive(request: DeriveVerifier) -> Option<DerivedVerifier> {
    let DeriveVerifier { client, user, secret, iterations, salt } = request;
    let Secret::Plain(password) = secret else {
        tracing::error!(user, "cannot derive a SCRAM verifier: no plain password");
        return None;
    };
    let derive = move || Verifier::derive(password.as_bytes(), &salt, iterations);
    match aside(derive).await {
        Ok(Ok(verifier)) => Some(DerivedVerifier { client, user, verifier: Arc::new(verifier) }),
        Ok(Err(error)) => {
            tracing::error!(user, %error, "cannot derive a SCRAM verifier");
            None
        }
        Err(error) => {
            tracing::error!(user, %error, "cannot derive a SCRAM verifier");
            None
        }
    }
}
