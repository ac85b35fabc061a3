//! An account's clients.

use trust::api::{ClientSummary, ClientsAnswer, ErrorCode, RevokeAnswer};
use trust::{AccountId, ClientId};

use crate::answer::Refusal;
use crate::routes::{Answer, Context, done, ok};

pub(crate) async fn list(context: Context) -> Answer {
    let clients = context.app.store.clients(scope(&context)?).await?;
    let clients = clients.into_iter().map(|listed| ClientSummary {
        client: listed.client.client.0,
        role: listed.client.role.number(),
        label: listed.label,
        software: listed.software,
        country: listed.country,
        thumbprint: listed.client.identity.thumbprint().to_string(),
        created_at_ms: listed.created_at_ms,
        disabled_at_ms: listed.disabled_at_ms,
        connected: listed.connected,
    });
    ok(&ClientsAnswer { clients: clients.collect() })
}

pub(crate) async fn disable(context: Context) -> Answer {
    let client: ClientId = context.id("client")?;
    if !context.app.store.disable_client(client, scope(&context)?).await? {
        return Err(unknown());
    }
    context.app.documents.changed();
    done()
}

pub(crate) async fn enable(context: Context) -> Answer {
    let client: ClientId = context.id("client")?;
    if !context.app.store.enable_client(client, scope(&context)?).await? {
        return Err(Refusal::new(ErrorCode::NotFound, "no client of yours has this name, or it was revoked"));
    }
    context.app.documents.changed();
    done()
}

pub(crate) async fn revoke(context: Context) -> Answer {
    let app = &context.app;
    let client: ClientId = context.id("client")?;
    let cause = format!("by account {}", context.account()?.name);
    if !app.store.revoke_client(client, scope(&context)?, cause).await? {
        return Err(unknown());
    }
    app.documents.changed();
    let listed = app.documents.sign_revocations(&app.store).await.map_err(|error| {
        tracing::error!(%error, %client, "a client is revoked, but the list could not be signed");
        let cause = "the client gets no new tokens, but the signed list is still the old one: try again";
        Refusal::later(ErrorCode::Unavailable, cause, 1_000)
    })?;
    ok(&RevokeAnswer { listed })
}

/// An operator sees the clients of all accounts.
fn scope(context: &Context) -> Result<Option<AccountId>, Refusal> {
    let account = context.account()?;
    Ok((!account.operator).then_some(account.account))
}

fn unknown() -> Refusal {
    Refusal::new(ErrorCode::NotFound, "no client of yours has this name")
}
