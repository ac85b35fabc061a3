//! What was carried, what relays have reported of it, and what was debited.

use std::time::Duration;

use super::stage::Stage;

/// Reports are written each second, and settled in batches; those that come late are looked for every 15 s.
const LIMIT: Duration = Duration::from_secs(60);

/// Every contract becomes due, and the worker settles it: what was reported is what is debited, once.
pub(super) fn debited(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    let number = |stage: &Stage<'_>, sql: &str| stage.network.number(sql).map(Option::unwrap_or_default);
    let reported = "select sum(bytes)::bigint from usage";
    let outcomes = "select sum(used_bytes)::bigint from contract_outcome";
    let settled = stage.until(LIMIT, |stage| {
        // Some are closed by their openers meanwhile, and would be due a minute later.
        let due = stage.network.ask("update open_contract set due_at = least(due_at, now())").is_ok();
        let (reported, settled) = (number(stage, reported), number(stage, outcomes));
        due && matches!((reported, settled), (Ok(reported), Ok(settled)) if reported == settled)
    });
    stage.came_within("everything that was reported is settled", settled, LIMIT);
    let charged = number(stage, "select sum(charged_bytes)::bigint from contract_outcome")?;
    let spent = number(
        stage,
        "select (coalesce((select sum(spent_bytes) from grant_balance), 0)
            + coalesce((select sum(bytes) from account_debt), 0))::bigint",
    )?;
    let reported = number(stage, reported)?;
    stage.check("bytes charged", charged, format!("{reported} (reported)"), charged == reported);
    stage.check("bytes debited", spent, format!("{reported} (reported)"), spent == reported);
    Ok(())
}
