//! Why something was refused or ended (§7).

use std::fmt;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $label:literal);* $(;)?) => {
        /// The reason that REFUSE and RESET carry. Its name is the label in metrics and logs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code { $($(#[$doc])* $name),* }

        impl Code {
            /// Every code there is.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Its number on the wire.
            #[must_use]
            pub const fn number(self) -> u16 {
                match self { $(Self::$name => $number),* }
            }

            /// Its name in the protocol's table.
            #[must_use]
            pub const fn label(self) -> &'static str {
                match self { $(Self::$name => $label),* }
            }

            /// The code of a number. One that is not known is the nearest that is general: [`Self::Busy`] below 20,
            /// [`Self::Cancelled`] above.
            #[must_use]
            pub const fn from_number(number: u16) -> Self {
                match number {
                    $($number => Self::$name,)*
                    0..20 => Self::Busy,
                    _ => Self::Cancelled,
                }
            }
        }
    };
}

codes! {
    /// The peer broke the protocol.
    ProtocolError = 1, "protocol_error";
    /// No version in common.
    Version = 2, "version";
    /// Come back at the time named.
    Busy = 3, "busy";
    /// Go to another relay.
    Draining = 4, "draining";
    /// An orderly end by the client.
    Leaving = 5, "leaving";
    /// Nothing was heard in time.
    Idle = 6, "idle";
    /// The token is not for this network, role or key, or its signature is not known.
    TokenInvalid = 10, "token_invalid";
    /// The token is to be refreshed.
    TokenExpired = 11, "token_expired";
    /// Revoked or disabled, by the operator or its owner.
    Revoked = 12, "revoked";
    /// A newer start of the same client is here.
    Superseded = 13, "superseded";
    /// The hello is not signed for this connection.
    ProofInvalid = 14, "proof_invalid";
    /// Its account was disabled. That may be taken back: come back at the time named.
    AccountDisabled = 15, "account_disabled";
    /// The provider is not connected here.
    ProviderGone = 20, "provider_gone";
    /// The contract is unknown, expired, or not the opener's.
    ContractInvalid = 21, "contract_invalid";
    /// The contract's bytes are used up.
    ContractSpent = 22, "contract_spent";
    /// No answer within the deadline.
    Timeout = 23, "timeout";
    /// More streams than are allowed at once.
    TooManyStreams = 24, "too_many_streams";
    /// More was sent than was granted.
    FlowControl = 25, "flow_control";
    /// By the end that opened it.
    Cancelled = 26, "cancelled";
    /// A peer took nothing for too long.
    Stalled = 27, "stalled";
    /// The provider takes no streams now.
    Paused = 28, "paused";
    /// Meant for another start of the provider.
    Stale = 29, "stale";
    /// A sealed message came twice.
    Replayed = 30, "replayed";
    /// The two clocks differ too much.
    ClockSkew = 31, "clock_skew";
    /// A sealed message does not open.
    SealInvalid = 32, "seal_invalid";
    /// The target refused the connection.
    TargetRefused = 40, "target_refused";
    /// The target cannot be reached.
    TargetUnreachable = 41, "target_unreachable";
    /// The target did not answer.
    TargetTimeout = 42, "target_timeout";
    /// The target's name has no address.
    NameNotFound = 43, "name_not_found";
    /// The provider does not go there.
    Policy = 44, "policy";
    /// A limit of the provider is reached.
    Limit = 45, "limit";
}

impl Code {
    /// A client that hears it at its hello, or later for its connection, must not come back by itself: nothing would
    /// change. Its owner is to be told.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(
            self,
            Self::Version | Self::TokenInvalid | Self::Revoked | Self::Superseded | Self::ProofInvalid
        )
    }

    /// What it is worth if a provider says it. Only a relay knows of contracts: an opener would throw away one that is good.
    #[must_use]
    pub const fn from_provider(self) -> Self {
        match self {
            Self::ContractInvalid | Self::ContractSpent => Self::ProtocolError,
            code => code,
        }
    }

    /// It is the target's own answer, or a rule about it: another provider would not do better.
    #[must_use]
    pub const fn concerns_target(self) -> bool {
        matches!(self, Self::TargetRefused | Self::NameNotFound)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.label())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn each_code_comes_back_from_its_number_and_no_two_share_one() {
        let numbers: HashSet<u16> = Code::ALL.iter().map(|code| code.number()).collect();
        let labels: HashSet<&str> = Code::ALL.iter().map(|code| code.label()).collect();
        assert_eq!((numbers.len(), labels.len()), (Code::ALL.len(), Code::ALL.len()));
        for &code in Code::ALL {
            assert_eq!(Code::from_number(code.number()), code);
        }
    }

    #[test]
    fn a_code_of_tomorrow_ends_no_more_than_it_says_and_is_never_final() {
        for number in 0..1_000 {
            let code = Code::from_number(number);
            if code.number() != number {
                assert_eq!(code, if number < 20 { Code::Busy } else { Code::Cancelled });
                assert!(!code.is_final());
            }
        }
    }

    #[test]
    fn what_a_provider_says_about_contracts_is_worth_nothing() {
        for &code in Code::ALL {
            let is_the_relays = matches!(code, Code::ContractInvalid | Code::ContractSpent);
            let worth = if is_the_relays { Code::ProtocolError } else { code };
            assert_eq!(code.from_provider(), worth);
        }
    }

    #[test]
    fn the_page_lists_each_code_as_it_is() {
        let page = include_str!("../../../docs/protocol.md");
        for &code in Code::ALL {
            let last = if code.is_final() { "yes" } else { "" };
            let row = page
                .lines()
                .find(|line| line.starts_with(&format!("| {} | {} |", code.number(), code.label())));
            let row = row.unwrap_or_else(|| panic!("{code} is not on the page"));
            assert_eq!(row.split('|').nth(3).map(str::trim), Some(last), "{code}");
        }
    }
}
