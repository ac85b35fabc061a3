//! From text to typed values, and back for `SHOW CONFIG`.

use super::model::{
    AuthType, ClientDisconnect, GuardPolicy, LockPileup, LogFormat, PoolMode, Secret, ServerBudget,
    SessionState,
};
use super::table::Kind;
use super::tls::SslMode;
use crate::units;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// PostgreSQL's own limit of `max_connections` (MAX_BACKENDS).
const MAX_SERVER_BUDGET: u64 = 262_143;

/// Why a value is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It is no value of this setting; the reason.
    Bad(String),
    /// PgBouncer knows it, we do not yet; what is built.
    NotBuilt(String),
}

impl From<String> for Refusal {
    fn from(reason: String) -> Self {
        Self::Bad(reason)
    }
}

/// A typed value of a setting.
pub(super) trait Value: Sized {
    fn read(text: &str, kind: &Kind) -> Result<Self, Refusal>;
    fn show(&self) -> String;
}

/// Whether two texts mean the same value of this kind.
pub(super) fn same(left: &str, right: &str, kind: &Kind) -> bool {
    match kind {
        Kind::Boolean => {
            matches!((units::boolean(left), units::boolean(right)), (Ok(left), Ok(right)) if left == right)
        }
        Kind::Duration { .. } => {
            matches!((units::duration(left), units::duration(right)), (Ok(left), Ok(right)) if left == right)
        }
        Kind::Integer { .. } | Kind::Bytes { .. } => {
            matches!((units::bytes(left), units::bytes(right)), (Ok(left), Ok(right)) if left == right)
        }
        _ => left.eq_ignore_ascii_case(right),
    }
}

/// The choice that `text` names.
pub(super) fn choice(text: &str, kind: &Kind) -> Result<&'static str, Refusal> {
    let Kind::Choice { built, not_built } = kind else {
        return Err(Refusal::Bad("it is not a choice".into()));
    };
    if let Some(choice) = built.iter().find(|choice| choice.eq_ignore_ascii_case(text)) {
        return Ok(choice);
    }
    let list = built.join(", ");
    if not_built.iter().any(|choice| choice.eq_ignore_ascii_case(text)) {
        return Err(Refusal::NotBuilt(list));
    }
    let hint = super::nearest(text, built.iter().copied())
        .map(|near| format!("; did you mean `{near}`?"))
        .unwrap_or_default();
    Err(Refusal::Bad(format!("it is one of {list}{hint}")))
}

impl Value for bool {
    fn read(text: &str, _kind: &Kind) -> Result<Self, Refusal> {
        Ok(units::boolean(text)?)
    }
    fn show(&self) -> String {
        u8::from(*self).to_string()
    }
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Value for $number {
            fn read(text: &str, kind: &Kind) -> Result<Self, Refusal> {
                Self::try_from(number(text, kind)?).map_err(|_| Refusal::Bad("the number is too large".into()))
            }
            fn show(&self) -> String {
                self.to_string()
            }
        }
    )*};
}

numbers!(u8, u16, u64, usize);

impl Value for u32 {
    fn read(text: &str, kind: &Kind) -> Result<Self, Refusal> {
        if matches!(kind, Kind::FileMode) {
            return Ok(units::file_mode(text)?);
        }
        Self::try_from(number(text, kind)?).map_err(|_| Refusal::Bad("the number is too large".into()))
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

/// The number of `text` within the bounds of `kind`.
pub(super) fn number(text: &str, kind: &Kind) -> Result<u64, Refusal> {
    let (number, minimum, maximum) = match *kind {
        Kind::Bytes { minimum, maximum } => (units::bytes(text)?, minimum, maximum),
        Kind::Integer { minimum, maximum } => (units::integer(text)?, minimum, maximum),
        _ => (units::integer(text)?, 0, u64::MAX),
    };
    if number < minimum || number > maximum {
        return Err(Refusal::Bad(format!("it must be between {minimum} and {maximum}")));
    }
    Ok(number)
}

impl Value for Duration {
    fn read(text: &str, kind: &Kind) -> Result<Self, Refusal> {
        let duration = units::duration(text)?;
        if let Kind::Duration { minimum } = *kind
            && duration < minimum
        {
            let minimum = units::show_duration(minimum);
            return Err(Refusal::Bad(format!("it must be at least {minimum} s")));
        }
        Ok(duration)
    }
    fn show(&self) -> String {
        units::show_duration(*self)
    }
}

impl Value for String {
    fn read(text: &str, _kind: &Kind) -> Result<Self, Refusal> {
        Ok(text.to_owned())
    }
    fn show(&self) -> String {
        self.clone()
    }
}

impl Value for PathBuf {
    fn read(text: &str, _kind: &Kind) -> Result<Self, Refusal> {
        if text.starts_with('@') {
            return Err(Refusal::NotBuilt("a path in the file system".into()));
        }
        Ok(Self::from(text))
    }
    fn show(&self) -> String {
        self.to_string_lossy().into_owned()
    }
}

impl Value for Vec<String> {
    fn read(text: &str, _kind: &Kind) -> Result<Self, Refusal> {
        Ok(text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect())
    }
    fn show(&self) -> String {
        self.join(", ")
    }
}

/// Nothing written means none.
impl<V: Value> Value for Option<V> {
    fn read(text: &str, kind: &Kind) -> Result<Self, Refusal> {
        if text.is_empty() { Ok(None) } else { V::read(text, kind).map(Some) }
    }
    fn show(&self) -> String {
        self.as_ref().map(V::show).unwrap_or_default()
    }
}

impl Value for SocketAddr {
    fn read(text: &str, _kind: &Kind) -> Result<Self, Refusal> {
        let text = match text.rsplit_once(':') {
            Some(("localhost", port)) => format!("127.0.0.1:{port}"),
            Some(("*", port)) => format!("0.0.0.0:{port}"),
            _ => text.to_owned(),
        };
        text.parse()
            .map_err(|_| Refusal::Bad("an address and a port are expected, such as 127.0.0.1:9127".into()))
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for ServerBudget {
    fn read(text: &str, _kind: &Kind) -> Result<Self, Refusal> {
        match text {
            "off" => Ok(Self::Off),
            "auto" => Ok(Self::Automatic),
            _ => match units::integer(text) {
                Ok(0) => Ok(Self::Automatic),
                Ok(count @ 1..=MAX_SERVER_BUDGET) => Ok(Self::Connections(count as usize)),
                _ => Err(Refusal::Bad(format!(
                    "it is `off`, `auto` (or 0), or a number of connections up to {MAX_SERVER_BUDGET}"
                ))),
            },
        }
    }
    fn show(&self) -> String {
        match self {
            Self::Off => "off".to_owned(),
            Self::Automatic => "auto".to_owned(),
            Self::Connections(count) => count.to_string(),
        }
    }
}

impl Value for Secret {
    fn read(text: &str, _kind: &Kind) -> Result<Self, Refusal> {
        Ok(Self::classify(text))
    }
    fn show(&self) -> String {
        String::new()
    }
}

macro_rules! choices {
    ($type:ty: $($name:literal = $variant:ident),*) => {
        impl Value for $type {
            fn read(text: &str, kind: &Kind) -> Result<Self, Refusal> {
                match choice(text, kind)? {
                    $($name => Ok(Self::$variant),)*
                    other => Err(Refusal::NotBuilt(format!("anything but {other}"))),
                }
            }
            fn show(&self) -> String {
                match self {
                    $(Self::$variant => $name,)*
                }
                .to_owned()
            }
        }
    };
}

choices!(AuthType: "any" = Any, "trust" = Trust, "plain" = Plain, "md5" = Md5, "scram-sha-256" = ScramSha256);
choices!(GuardPolicy: "off" = Off, "observe" = Observe, "on" = On);
choices!(PoolMode: "session" = Session, "statement" = Statement, "transaction" = Transaction);
choices!(ClientDisconnect: "cancel" = Cancel, "close" = Close, "finish" = Finish);
choices!(SslMode: "disable" = Disable, "allow" = Allow, "prefer" = Prefer, "require" = Require,
         "verify-ca" = VerifyCa, "verify-full" = VerifyFull);
choices!(LockPileup: "cancel-blocker" = CancelBlocker, "cancel-waiting-ddl" = CancelWaitingDdl, "off" = Off, "warn" = Warn);
choices!(SessionState: "ignore" = Ignore, "pin" = Pin, "refuse" = Refuse);
choices!(LogFormat: "text" = Text, "json" = Json);
