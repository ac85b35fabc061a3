//! One session: messages in, results out.

mod answer;
mod input;

use super::ConsoleContext;
use super::source::Source;
use answer::answer;
use input::{Input, Message};
use pgwire::message::backend::{parameter_status, ready_for_query};
use pgwire::message::{Severity, TransactionStatus, error_response};
use pooling::seam::ConsoleLogin;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

pub use answer::MAX_STATEMENTS;
pub use input::MAX_MESSAGE_BYTES;

/// Longest time that a client may take to read what it asked for.
const WRITE_LIMIT: Duration = Duration::from_secs(30);

/// What a server reports at login; drivers refuse to work without some of it.
const PARAMETERS: &[(&str, &str)] = &[
    ("client_encoding", "UTF8"),
    ("server_encoding", "UTF8"),
    ("DateStyle", "ISO"),
    ("TimeZone", "GMT"),
    ("integer_datetimes", "on"),
    ("standard_conforming_strings", "on"),
    ("is_superuser", "on"),
];

/// Speaks with one client until it leaves.
pub(super) async fn run<S: Source>(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    login: ConsoleLogin,
    tls: String,
    context: &ConsoleContext<S>,
) -> io::Result<()> {
    let (reader, mut writer) = tokio::io::split(stream);
    let Some(seat) = context.sessions.open(&login.user, login.address, tls) else {
        let refusal = error_response(
            Severity::Fatal,
            "53300",
            &format!("no more than {} console sessions at once", super::MAX_CONSOLE_SESSIONS),
            None,
            Some("Close another session on the console, then try again."),
        );
        return send(&mut writer, &refusal).await;
    };
    send(&mut writer, &greeting(context.version)).await?;
    let mut input = Input::new(reader, login.pending);
    // After an error in the extended protocol everything up to Sync is skipped.
    let mut skips = false;
    loop {
        let message = match input.next().await {
            Ok(message) => message,
            Err(refusal) => {
                if let Some(refusal) = refusal.for_client() {
                    send(&mut writer, &refusal).await?;
                }
                return Ok(());
            }
        };
        let mut out = Vec::new();
        match message {
            Message::Terminate => return Ok(()),
            Message::Sync => {
                skips = false;
                ready_for_query(&mut out, TransactionStatus::Idle);
            }
            Message::Query(text) if !skips => {
                seat.requested();
                answer(&mut out, &text, login.admin, context).await;
                ready_for_query(&mut out, TransactionStatus::Idle);
            }
            Message::Extended if !skips => {
                skips = true;
                out = error_response(
                    Severity::Error,
                    "0A000",
                    "extended query protocol not supported by admin console",
                    None,
                    Some("Use the simple query protocol, as psql does."),
                );
            }
            Message::FunctionCall if !skips => {
                out = error_response(
                    Severity::Error,
                    "0A000",
                    "the admin console has no functions",
                    None,
                    None,
                );
                ready_for_query(&mut out, TransactionStatus::Idle);
            }
            Message::Query(_) | Message::Extended | Message::FunctionCall | Message::Ignored => {}
        }
        if !out.is_empty() {
            send(&mut writer, &out).await?;
        }
    }
}

fn greeting(version: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    parameter_status(&mut out, "server_version", &format!("{version}/holdfast"));
    for (name, value) in PARAMETERS {
        parameter_status(&mut out, name, value);
    }
    ready_for_query(&mut out, TransactionStatus::Idle);
    out
}

async fn send(writer: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> io::Result<()> {
    let written = async {
        writer.write_all(bytes).await?;
        writer.flush().await
    };
    tokio::time::timeout(WRITE_LIMIT, written).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}
