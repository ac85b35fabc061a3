//! What a judge says.

use super::Limits;

/// Of one relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It beats.
    Alive,
    /// It does not, and that is all that is known.
    Late,
    /// It does not, and somebody reaches it: its way to the database is in trouble, not the relay.
    Unknown(Doubt),
    /// It looks dead, and something is missing to say so.
    Suspect(Doubt),
    /// It is gone. A mark: nothing is deleted, and its next beat ends it.
    Dead(DeathCause),
}

/// What speaks against a death, or is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The judge reaches it.
    Reached,
    /// A peer reaches it.
    PeerReaches,
    /// It has not been silent for long enough.
    Time,
    /// It is the only one, and its host does not say that nobody listens.
    NoAnswerAlone,
    /// The judge reaches nobody.
    Blind,
    /// The judge's own path to the database has not held for long enough.
    OwnPath,
    /// The network is on hold.
    Hold,
    /// As many have been removed lately as may be.
    Rate,
}

/// Why a relay counts as dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeathCause {
    /// Its own host refuses the port.
    Refused,
    /// It is silent on every path.
    NoAnswer,
}

/// Nobody is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// Why.
    pub cause: HoldCause,
    /// Since when, ms of the judge's clock.
    pub since_ms: u64,
}

/// Why nobody is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldCause {
    /// More relays are late than the limits allow.
    ManyLate,
    /// The judge's own writes or reads are not answered.
    OwnPath,
    /// The judge reaches no relay, not even those that beat.
    Blind,
}

/// One relay's part of a judgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judged<K> {
    /// The relay.
    pub relay: K,
    /// The start that it is about.
    pub epoch: u64,
    /// The last beat that was known: a verdict falls with the next one.
    pub stamp: u64,
    /// The verdict.
    pub verdict: Verdict,
    /// For how long it has not been heard, ms, what was forgiven taken off.
    pub silent_ms: u64,
}

/// All that is said at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement<K> {
    /// Of each relay, those that have been silent longest first.
    pub judged: Vec<Judged<K>>,
    /// Whether anybody may be removed.
    pub hold: Option<Hold>,
    /// How many relays count.
    pub relays: u32,
    /// How many of them are late.
    pub late: u32,
    /// What holds for so many.
    pub limits: Limits,
}

impl Verdict {
    /// A bounded set of names, for records and metrics.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Alive => "alive",
            Self::Late => "late",
            Self::Unknown(_) => "unknown",
            Self::Suspect(_) => "suspect",
            Self::Dead(_) => "dead",
        }
    }

    /// Why, as a name.
    #[must_use]
    pub const fn cause(self) -> &'static str {
        match self {
            Self::Alive => "",
            Self::Late => "no_beat",
            Self::Unknown(doubt) | Self::Suspect(doubt) => doubt.label(),
            Self::Dead(cause) => cause.label(),
        }
    }
}

impl Doubt {
    /// A name.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Reached => "reached",
            Self::PeerReaches => "peer_reaches",
            Self::Time => "time",
            Self::NoAnswerAlone => "no_answer_alone",
            Self::Blind => "blind",
            Self::OwnPath => "own_path",
            Self::Hold => "hold",
            Self::Rate => "rate",
        }
    }
}

impl DeathCause {
    /// A name.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::NoAnswer => "no_answer",
        }
    }

    /// The cause of this name.
    #[must_use]
    pub fn from_label(label: &str) -> Option<Self> {
        [Self::Refused, Self::NoAnswer].into_iter().find(|cause| cause.label() == label)
    }
}

impl HoldCause {
    /// A name.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::ManyLate => "many_late",
            Self::OwnPath => "own_path",
            Self::Blind => "blind",
        }
    }
}
