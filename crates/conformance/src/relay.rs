//! The checks of a relay. Each has connections and clients of its own.

mod admission;
mod frames;
mod lab;
mod opening;
mod streams;

use crate::authority::Authority;
use crate::report::{Check, Report, Result};
use std::pin::Pin;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// One check takes no longer, whatever the relay does.
const CHECK_LIMIT: Duration = Duration::from_secs(60);

/// What is checked.
#[derive(Debug)]
pub struct Subject {
    /// `host:port`; the host must stand in the relay's certificate.
    pub address: String,
    /// Who made the network that it serves.
    pub authority: Authority,
}

/// A check that cannot be looked at here, and why.
#[derive(Debug)]
pub(crate) struct Skip(pub(crate) String);

pub(crate) type Verdict = anyhow::Result<std::result::Result<(), Skip>>;
type Looking<'a> = Pin<Box<dyn Future<Output = Verdict> + Send + 'a>>;
type Look = for<'a> fn(&'a Subject) -> Looking<'a>;

/// A table of checks: number, section, what must be true, the function that looks.
macro_rules! checks {
    ($($number:literal $section:literal $name:literal $look:path;)*) => {
        static CHECKS: &[(Check, Look)] = &[$(
            (Check { number: $number, section: $section, name: $name }, |subject| Box::pin($look(subject))),
        )*];
    };
}

checks! {
    1 "1" "TLS 1.3, ALPN, a chain that ends in the network's name, and a hello that is taken in" admission::welcomes;
    2 "1" "the same inside a WebSocket on the same port" admission::welcomes_inside_a_websocket;
    3 "2" "a hello that comes byte by byte is a hello" admission::takes_a_hello_in_parts;
    4 "2" "fields that nobody knows are skipped" admission::skips_unknown_fields;
    5 "2" "a field that comes twice is a protocol_error" admission::refuses_a_field_twice;
    6 "3" "another version is refused with version" admission::refuses_another_version;
    7 "3" "an expired token is refused with token_expired" admission::refuses_an_expired_token;
    8 "3" "a token of another network, role or key is refused with token_invalid" admission::refuses_anothers_token;
    9 "3" "a proof of another connection is refused with proof_invalid" admission::refuses_a_replayed_proof;
    10 "3" "a newer start takes the place of an older one, which hears superseded" admission::supersedes;
    11 "3" "an older start than the one that is here is refused with superseded" admission::refuses_an_older_start;
    12 "3" "whoever says no hello is closed soon after 5 s" admission::closes_over_silence;
    20 "2" "PING comes back with its bytes" frames::echoes_pings;
    21 "2" "a frame of an unknown type from 0x80 up is skipped" frames::skips_unknown_frames;
    22 "2" "a frame of an unknown type below 0x80 ends the connection with protocol_error" frames::refuses_unknown_frames;
    23 "2" "a frame longer than any ends the connection with protocol_error" frames::refuses_long_frames;
    24 "2" "flags are ignored" frames::ignores_flags;
    25 "4" "a provider may not open" frames::refuses_an_open_of_a_provider;
    26 "3" "REFUSE leaving from a client ends its connection" frames::lets_leave;
    30 "4" "OPEN reaches the provider with what is meant for it, and OPENED comes back" opening::passes_opens;
    31 "4" "a provider's REFUSE comes back with code, cause and time" opening::passes_refusals;
    32 "4" "no answer within the deadline is a REFUSE timeout, and the provider's side is reset" opening::keeps_deadlines;
    33 "4" "who is not connected is provider_gone, another start of it is stale" opening::knows_who_is_here;
    34 "4" "a contract that is unknown, forged or another's is contract_invalid" opening::checks_contracts;
    35 "4" "a number that was used ends the connection with protocol_error" opening::refuses_a_used_number;
    36 "4" "an opener that cancels is told to the provider" opening::passes_cancels;
    40 "5" "DATA goes both ways unchanged, of the shortest and the greatest length" streams::passes_data;
    41 "5" "within the granted credit everything passes, beyond it the stream is reset with flow_control" streams::counts_credit;
    42 "5" "the sealed end costs no credit" streams::lets_end_without_credit;
    43 "5" "FIN ends one direction, and after both the stream is gone without a word" streams::passes_fins;
    44 "5" "RESET passes with code and time, and ends both directions" streams::passes_resets;
    45 "4" "used-up bytes reset with contract_spent" streams::spends_contracts;
    46 "4" "a contract that follows goes on for the one that is used up" streams::goes_on_with_what_follows;
    47 "5" "a provider that leaves resets its streams" streams::tells_of_a_provider_that_leaves;
    48 "5" "an opener that leaves resets its streams" streams::tells_of_an_opener_that_leaves;
    49 "5" "DATA and RESET for a stream that is over are nobody's fault" streams::forgives_what_comes_late;
}

/// All checks of a relay.
pub fn checks() -> impl Iterator<Item = Check> {
    CHECKS.iter().map(|(check, _)| *check)
}

/// Runs the checks, those whose number `wanted` takes, one after the other.
pub async fn run(subject: &Subject, wanted: impl Fn(u16) -> bool) -> Report {
    let mut report = Report::default();
    for (check, look) in CHECKS.iter().filter(|(check, _)| wanted(check.number)) {
        let began = Instant::now();
        let result = match timeout(CHECK_LIMIT, look(subject)).await {
            Ok(Ok(Ok(()))) => Result::Passed,
            Ok(Ok(Err(Skip(why)))) => Result::Skipped(why),
            Ok(Err(error)) => Result::Failed(format!("{error:#}")),
            Err(_) => Result::Failed(format!("took longer than {} s", CHECK_LIMIT.as_secs())),
        };
        report.add(*check, result, began.elapsed());
    }
    report
}
