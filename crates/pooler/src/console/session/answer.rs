//! The answer to one Query message, all but its ReadyForQuery.

use crate::console::command::{self, Command, Refusal, Show};
use crate::console::source::Source;
use crate::console::{ConsoleContext, RELOAD_LIMIT, ReloadReport, ReloadRequest, averages, show, wall_clock};
use crate::control::ReactorSilent;
use pgwire::message::{ErrorFields, Severity, backend};
use settings::pooler::show_config;
use std::sync::PoisonError;
use tokio::sync::oneshot;

/// Most statements in one message.
pub const MAX_STATEMENTS: usize = 16;

/// Longest part of a wrong command that an error repeats, in characters.
const MAX_REPEATED_CHARACTERS: usize = 1_000;

/// Runs the statements one after the other; the first error ends them, as in PostgreSQL.
pub(super) async fn answer<S: Source>(
    out: &mut Vec<u8>,
    message: &str,
    admin: bool,
    context: &ConsoleContext<S>,
) {
    let statements: Vec<&str> = command::statements(message).take(MAX_STATEMENTS + 1).collect();
    if statements.len() > MAX_STATEMENTS {
        let text = format!("more than {MAX_STATEMENTS} statements in one message");
        error("54000", text).write_error(out);
        return;
    }
    if statements.is_empty() {
        backend::empty_query_response(out);
    }
    // A single wrong command is repeated as it came, its end included, which is PgBouncer's way.
    let single = statements.len() == 1;
    for statement in statements {
        let answered = match command::parse(statement) {
            Ok(command) => run(out, command, admin, context).await,
            Err(Refusal::NotBuilt(name)) => Err(not_built(&name)),
            Err(Refusal::Invalid) => Err(invalid(if single { message } else { statement })),
        };
        if let Err(error) = answered {
            tracing::info!(%error, "console command refused");
            error.write_error(out);
            return;
        }
    }
}

async fn run<S: Source>(
    out: &mut Vec<u8>,
    command: Command,
    admin: bool,
    context: &ConsoleContext<S>,
) -> Result<(), ErrorFields> {
    match command {
        // The file's hash is one of its passwords too: whoever has it could try weak ones at home.
        Command::Show(Show::ConfigHash) if !admin => Err(error("42501", "admin access needed")),
        Command::Show(show) => self::show(out, show, context).await.map_err(silent),
        Command::ShowParameter(name, value) => {
            show::parameter(out, name, value);
            Ok(())
        }
        Command::IgnoredSet => {
            ErrorFields::new(Severity::Notice, "00000", "SET ignored").write_notice(out);
            backend::command_complete(out, "SET");
            Ok(())
        }
        Command::Reload if !admin => Err(error("42501", "admin access needed")),
        Command::Reload => {
            let report = reload(context).await?;
            for note in report.notes {
                ErrorFields::new(Severity::Notice, "00000", note).write_notice(out);
            }
            backend::command_complete(out, "RELOAD");
            Ok(())
        }
    }
}

async fn show<S: Source>(
    out: &mut Vec<u8>,
    show: Show,
    context: &ConsoleContext<S>,
) -> Result<(), ReactorSilent> {
    let source = &context.source;
    match show {
        Show::Clients => {
            show::clients(out, &source.clients().await?, &context.sessions.entries(), wall_clock());
        }
        Show::Config => show::config(out, &show_config(&*source.config().await?)),
        Show::Budget => show::budget(out, &source.budgets().await?),
        Show::Events => show::events(out, &source.events().await?, wall_clock()),
        Show::ConfigHash => show::config_hash(out, context.truth().await.as_ref()),
        Show::ConfigTruth => show::config_truth(out, context.truth().await.as_ref()),
        Show::Help => show::help(out),
        Show::Holders => show::holders(out, &source.holders().await?),
        Show::Lanes => show::lanes(out, &source.lanes().await?),
        Show::Locks => show::locks(out, &source.locks().await?),
        Show::Overload => show::overloads(out, &source.pools().await?),
        Show::Patience => show::patience(out, &source.patience().await?),
        Show::Storms => show::storms(out, &source.storms().await?),
        Show::Pools => show::pools(out, &source.pools().await?, context.sessions.entries().len()),
        Show::Servers => show::servers(out, &source.servers().await?, wall_clock()),
        Show::Stalls => show::stalls(out, &source.stalls().await?, wall_clock()),
        Show::Version => show::version(out, context.version),
        Show::Stats | Show::StatsAverages | Show::StatsTotals => stats(out, show, context).await?,
    }
    Ok(())
}

async fn stats<S: Source>(
    out: &mut Vec<u8>,
    show: Show,
    context: &ConsoleContext<S>,
) -> Result<(), ReactorSilent> {
    let pools = context.source.pools().await?;
    let period = context.source.config().await?.general.stats_period;
    let totals = averages::per_database(&pools, context.sessions.totals());
    let now = context.now();
    let mut history = context.history.lock().unwrap_or_else(PoisonError::into_inner);
    match show {
        Show::StatsTotals => show::stats_totals(out, &totals),
        Show::StatsAverages => show::stats_averages(out, &totals, &history, now),
        _ => show::stats(out, &totals, &history, now),
    }
    history.observe(now, period, &totals);
    Ok(())
}

async fn reload<S: Source>(context: &ConsoleContext<S>) -> Result<ReloadReport, ErrorFields> {
    tracing::info!("RELOAD command issued");
    let (sender, answer) = oneshot::channel();
    let asked = async {
        context.reload.send(ReloadRequest { answer: sender }).await.ok()?;
        answer.await.ok()
    };
    match tokio::time::timeout(RELOAD_LIMIT, asked).await {
        Ok(Some(Ok(report))) => Ok(report),
        // The log has the reason already.
        Ok(Some(Err(_))) => Err(error("F0000", "RELOAD failed, see logs for additional details")),
        Ok(None) | Err(_) => Err(error("58000", "RELOAD gave no answer; it may still come into force")),
    }
}

fn silent(cause: ReactorSilent) -> ErrorFields {
    let hint = Some("The pooler's data plane is busy or stopping; asking again is safe.".to_owned());
    ErrorFields { hint, ..error("58000", cause.to_string()) }
}

fn not_built(name: &str) -> ErrorFields {
    let hint = Some("SHOW HELP lists what there is.".to_owned());
    ErrorFields { hint, ..error("0A000", format!("{name} is not built yet")) }
}

fn invalid(command: &str) -> ErrorFields {
    let command: String = command.chars().take(MAX_REPEATED_CHARACTERS).collect();
    error("42601", format!("invalid command '{command}', use SHOW HELP;"))
}

fn error(sqlstate: &str, message: impl Into<String>) -> ErrorFields {
    ErrorFields::new(Severity::Error, sqlstate, message)
}
