//! What a customer is told when a stream does not come about: one table for both protocols.

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::time::Duration;

/// The longest cause that is sent.
pub const MAX_CAUSE_BYTES: usize = 300;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $label:literal, $status:literal, $socks:literal);* $(;)?) => {
        /// Why there is no stream. Its label is what `X-Proxy-Error` says, and what counters are kept by.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Reason { $($(#[$doc])* $name),* }

        impl Reason {
            /// Every reason there is.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// A stable word for programs.
            #[must_use]
            pub const fn label(self) -> &'static str {
                match self { $(Self::$name => $label),* }
            }

            /// The status of an HTTP answer (RFC 9110).
            #[must_use]
            pub const fn http_status(self) -> u16 {
                match self { $(Self::$name => $status),* }
            }

            /// The reply field of SOCKS5 (RFC 1928 §6).
            #[must_use]
            pub const fn socks_reply(self) -> u8 {
                match self { $(Self::$name => $socks),* }
            }
        }
    };
}

reasons! {
    /// The bytes are not the protocol.
    BadRequest = "bad_request", 400, 0x01;
    /// The request is longer than is read.
    TooLarge = "too_large", 431, 0x01;
    /// The user name does not follow the grammar.
    BadUsername = "bad_username", 400, 0x01;
    /// No user name and password were given.
    LoginRequired = "login_required", 407, 0x02;
    /// They are not known.
    LoginFailed = "login_failed", 407, 0x02;
    /// Too many have failed from this address.
    TooManyFailedLogins = "too_many_failed_logins", 429, 0x02;
    /// The account was disabled.
    AccountDisabled = "account_disabled", 403, 0x02;
    /// The account has no grant, or nothing is left of it.
    NoGrant = "no_grant", 402, 0x02;
    /// The target may not be reached through anybody, or no provider that was asked goes there.
    Policy = "policy", 403, 0x02;
    /// The account has as many streams as it may.
    LimitStreams = "limit_streams", 429, 0x01;
    /// The account opens streams faster than it may.
    LimitOpens = "limit_opens", 429, 0x01;
    /// The account reaches for more targets than it may.
    LimitTargets = "limit_targets", 429, 0x01;
    /// No provider is what was asked for.
    NoProvider = "no_provider", 503, 0x03;
    /// Those that are take no streams now.
    ProvidersResting = "providers_resting", 503, 0x03;
    /// A hard session has lost its provider.
    SessionLost = "session_lost", 502, 0x04;
    /// The providers that were asked failed.
    ProviderFailed = "provider_failed", 502, 0x04;
    /// None of them answered in time.
    ProviderTimeout = "provider_timeout", 504, 0x06;
    /// The target refused the connection.
    TargetRefused = "target_refused", 502, 0x05;
    /// There is no way to the target.
    TargetUnreachable = "target_unreachable", 502, 0x04;
    /// The target did not answer.
    TargetTimeout = "target_timeout", 504, 0x06;
    /// The target's name has no address.
    NameNotFound = "name_not_found", 502, 0x04;
    /// What came back is not HTTP.
    BadAnswer = "bad_answer", 502, 0x01;
    /// BIND or UDP ASSOCIATE.
    CommandUnsupported = "command_unsupported", 501, 0x07;
    /// An address of a type that SOCKS5 does not have.
    AddressType = "address_type", 400, 0x08;
    /// The proxy cannot ask the network's api, and needs to.
    Unavailable = "unavailable", 503, 0x01;
}

/// A refusal, as a customer sees it: nothing in it that the customer may not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why.
    pub reason: Reason,
    /// The same for people.
    pub cause: Cow<'static, str>,
    /// When trying again may help, if that is known.
    pub retry_after: Option<Duration>,
}

impl Refusal {
    /// A refusal without a time.
    #[must_use]
    pub fn new(reason: Reason, cause: impl Into<Cow<'static, str>>) -> Self {
        Self { reason, cause: cause.into(), retry_after: None }
    }

    /// With the time after which trying again may help.
    #[must_use]
    pub const fn after(mut self, retry_after: Duration) -> Self {
        self.retry_after = Some(retry_after);
        self
    }

    /// The cause on one line of printable ASCII, as a header can carry it.
    #[must_use]
    pub fn cause_line(&self) -> String {
        let printable = |c: char| if c == ' ' || c.is_ascii_graphic() { c } else { '?' };
        self.cause.chars().take(MAX_CAUSE_BYTES).map(printable).collect()
    }
}

impl Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason.label(), self.cause)
    }
}

impl std::error::Error for Refusal {}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_reason_has_a_word_of_its_own_and_a_code_in_both_protocols() {
        let labels: HashSet<_> = Reason::ALL.iter().map(|reason| reason.label()).collect();
        assert_eq!(labels.len(), Reason::ALL.len());
        for reason in Reason::ALL {
            assert!((400..600).contains(&reason.http_status()) && (1..=8).contains(&reason.socks_reply()));
        }
    }

    #[test]
    fn the_guide_lists_each_reason_with_its_codes() {
        let guide = include_str!("../../../docs/guide/proxy.md");
        for reason in Reason::ALL {
            let code = format!("`{}`", reason.label());
            let row = guide.lines().find(|line| line.starts_with('|') && line.contains(&code));
            let row = row.unwrap_or_else(|| panic!("{code} is not in the guide"));
            assert!(row.contains(&reason.http_status().to_string()), "{row}");
        }
    }

    #[test]
    fn a_cause_cannot_add_a_header_or_grow() {
        let refusal = Refusal::new(Reason::Policy, format!("x\r\nset-cookie: é{}", "y".repeat(1_000)));
        let line = refusal.cause_line();
        assert!(!line.contains('\r') && !line.contains('\n') && line.len() == MAX_CAUSE_BYTES, "{line}");
    }
}
