//! Grants.

use store::NewGrant;
use trust::api::{ErrorCode, GrantRequest, GrantSummary, GrantsAnswer};
use trust::{AccountId, GrantId};

use crate::answer::Refusal;
use crate::routes::{Answer, Context, ok};

/// The largest grant, bytes: an exabyte.
const GRANT_MAX: u64 = 1_000_000_000_000_000_000;

pub(crate) async fn list(context: Context) -> Answer {
    answer(&context, context.account()?.account).await
}

pub(crate) async fn create(context: Context) -> Answer {
    let asked: GrantRequest = context.json()?;
    if asked.bytes == 0 || asked.bytes > GRANT_MAX {
        return Err(Refusal::bad("'bytes' has to be from 1 to 10^18"));
    }
    if asked.expires_at_ms <= asked.starts_at_ms || asked.expires_at_ms <= context.now_ms {
        return Err(Refusal::bad("the grant would end before it begins, or has ended"));
    }
    let account = AccountId(asked.account);
    let new = NewGrant {
        grant: GrantId(asked.request),
        account,
        bytes: asked.bytes,
        starts_at_ms: asked.starts_at_ms,
        expires_at_ms: asked.expires_at_ms,
    };
    if !context.app.store.create_grant(new).await? {
        let grants = context.app.store.grants(account, context.now_ms).await?;
        if !grants.iter().any(|grant| grant.grant == new.grant) {
            return Err(Refusal::new(
                ErrorCode::NotFound,
                "no such account, or the request was another grant",
            ));
        }
    }
    answer(&context, account).await
}

async fn answer(context: &Context, account: AccountId) -> Answer {
    let grants = context.app.store.grants(account, context.now_ms).await?;
    let grants = grants.into_iter().map(|grant| GrantSummary {
        grant: grant.grant.0,
        bytes: grant.bytes,
        spent_bytes: grant.spent_bytes,
        held_bytes: grant.held_bytes,
        starts_at_ms: grant.starts_at_ms,
        expires_at_ms: grant.expires_at_ms,
    });
    let overdrawn_bytes = context.app.store.overdrawn_bytes(account).await?;
    ok(&GrantsAnswer { grants: grants.collect(), overdrawn_bytes })
}
