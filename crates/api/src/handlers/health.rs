//! Whether it lives, and whether it can serve.

use serde_json::json;
use trust::api::{ErrorCode, StatusAnswer};

use crate::answer::Refusal;
use crate::handlers::accounts::lock;
use crate::routes::{Answer, Context, ok};

/// Needs nothing but this process. How many providers there are is said as well as it is known.
pub(crate) async fn status(context: Context) -> Answer {
    let providers = context.app.pools.current().map(|served| served.figures(context.now_ms));
    ok(&StatusAnswer { status: "ok".into(), providers })
}

/// Needs the database, and the documents that tokens are checked with.
pub(crate) async fn ready(context: Context) -> Answer {
    context.app.documents.current()?;
    let (app, now_ms) = (&context.app, context.now_ms);
    let known = lock(&app.readiness).get(&(), now_ms);
    let is_ready = match known {
        Some(is_ready) => is_ready,
        None => {
            let asked = app.store.is_ready().await;
            lock(&app.readiness).keep((), asked.as_ref().is_ok_and(|is_ready| *is_ready), now_ms);
            asked?
        }
    };
    if !is_ready {
        return Err(Refusal::later(
            ErrorCode::Unavailable,
            "the database gives no answer, or does not know the network",
            1_000,
        ));
    }
    ok(&json!({ "status": "ok" }))
}
