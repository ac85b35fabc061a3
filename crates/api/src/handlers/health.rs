//! Whether it lives, and whether it can serve.

use serde_json::json;
use trust::api::ErrorCode;

use crate::answer::Refusal;
use crate::routes::{Answer, Context, ok};

/// Needs nothing but this process.
pub(crate) async fn status(_context: Context) -> Answer {
    ok(&json!({ "status": "ok" }))
}

/// Needs the database, and the documents that tokens are checked with.
pub(crate) async fn ready(context: Context) -> Answer {
    context.app.documents.current()?;
    if !context.app.store.is_ready().await? {
        return Err(Refusal::later(ErrorCode::Unavailable, "the database does not know the network", 1_000));
    }
    ok(&json!({ "status": "ok" }))
}
