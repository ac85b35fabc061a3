//! What answers mean for prepared statements.

use super::judge::Judge;
use crate::close_cause::CloseCause;
use crate::statements::{Effect, PREFIX};
use pgwire::message::{error_fields, parse, tag};
use pgwire::replies::Simulated;

/// The plan of a statement no longer fits the tables: PostgreSQL's code for that, and the function that says so. The
/// text may be translated.
const FEATURE_NOT_SUPPORTED: &[u8] = b"0A000";
const REVALIDATION: &[u8] = b"RevalidateCachedQuery";

/// A statement does not exist, or exists already.
const MISTAKEN: [&[u8]; 2] = [b"26000", b"42P05"];

/// Places of one error in which a name is put back: the name may be long, and the text is the client's.
const MAX_PLACES: usize = 4;

impl Judge<'_> {
    /// An answer of the pooler's own whose turn has come.
    pub(super) fn take_simulated(&mut self) -> Option<Simulated> {
        let client = self.client.and_then(|id| Some((id, &mut self.clients.find_mut(id)?.statements)));
        self.server.take_simulated(client)
    }

    /// Names change as the message says.
    pub(super) fn settle_statements(&mut self, tag: u8, body: &[u8]) {
        let settled = self.server.replies.take_settled();
        if tag == tag::ERROR_RESPONSE && settled.failed {
            self.take_error(body);
        }
        let client = self.client.and_then(|id| Some((id, &mut self.clients.find_mut(id)?.statements)));
        self.server.settle_statements(settled, client);
    }

    /// All statements of a server may be gone.
    pub(super) fn take_command_tag(&mut self, body: &[u8]) {
        let drops_all = matches!(parse::command_complete(body), Ok(b"DISCARD ALL" | b"DEALLOCATE ALL"));
        if !drops_all {
            return;
        }
        self.server.statements.clear();
        if let Some(client) = self.client.and_then(|id| self.clients.find_mut(id))
            && let Some(statements) = &mut client.statements
        {
            statements.clear();
        }
    }

    /// An error is the answer to the oldest message that changes names: it may say that a plan is stale, and it must not
    /// show the pooler's names.
    fn take_error(&mut self, body: &[u8]) {
        let Some(effect) = self.server.statements.oldest() else { return };
        if let Effect::Use { statement, .. } = effect
            && error_fields(body).any(|field| field == (b'C', FEATURE_NOT_SUPPORTED))
            && error_fields(body).any(|field| field == (b'R', REVALIDATION))
            && let Some(statements) = &mut self.statements
        {
            statements.retire(statement);
            if self.server.again.ask_for() {
                return;
            }
        }
        let is_about = |name: &[u8]| body.windows(name.len()).any(|bytes| bytes == name);
        if let Some(statement) = effect.statement()
            && error_fields(body).any(|(code, value)| code == b'C' && MISTAKEN.contains(&value))
            && is_about(statement.name())
        {
            // Somebody has made or dropped it by SQL: the server holds something else than is believed.
            self.server.close_needed = Some(CloseCause::Desync);
        }
        let Some(name) = effect.client_name() else { return };
        if self.client.is_some() && is_about(PREFIX) {
            self.replaced = Some(with_client_name(body, name));
        }
    }
}

/// An error whose texts name a statement of the pooler's, as the client calls it.
fn with_client_name(body: &[u8], name: &[u8]) -> Vec<u8> {
    let mut out = vec![tag::ERROR_RESPONSE, 0, 0, 0, 0];
    let mut places = MAX_PLACES;
    for (code, value) in error_fields(body) {
        out.push(code);
        let mut rest = value;
        while places > 0
            && let Some(at) = rest.windows(PREFIX.len()).position(|bytes| bytes == PREFIX)
        {
            let (before, found) = rest.split_at(at);
            let end = found.iter().position(|&byte| byte == b'"').unwrap_or(found.len());
            out.extend_from_slice(before);
            out.extend_from_slice(name);
            places -= 1;
            rest = &found[end..];
        }
        out.extend_from_slice(rest);
        out.push(0);
    }
    out.push(0);
    let length = u32::try_from(out.len() - 1).unwrap_or(u32::MAX);
    out[1..5].copy_from_slice(&length.to_be_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgwire::message::ErrorFields;

    #[test]
    fn a_long_name_does_not_multiply_in_an_error() {
        let body = [&b"SERROR\0C42601\0M"[..], &b"\"holdfast_\"".repeat(5_000), b"\0\0"].concat();
        let name = [b'n'; 100_000];
        assert!(with_client_name(&body, &name).len() < body.len() + 5 * name.len());
    }

    #[test]
    fn an_error_names_the_statement_as_the_client_calls_it() {
        let body = b"SERROR\0C42P05\0Mprepared statement \"holdfast_1f\" already exists\0\0";
        let message = with_client_name(body, b"the \"one\"");
        assert_eq!(message.len(), 1 + u32::from_be_bytes(message[1..5].try_into().unwrap()) as usize);
        assert_eq!(
            ErrorFields::parse(&message[5..]).message,
            "prepared statement \"the \"one\"\" already exists"
        );
    }
}
