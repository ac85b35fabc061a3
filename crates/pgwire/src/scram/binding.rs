//! Channel binding: what ties a login to the TLS connection that it runs on.

use std::borrow::Cow;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::ScramError;

/// The mechanism's registered name where the channel is bound.
pub const MECHANISM_PLUS: &str = "SCRAM-SHA-256-PLUS";
/// The only type of binding that PostgreSQL knows (RFC 5929 §4).
const TYPE: &str = "tls-server-end-point";

/// The hash of the server's certificate, which both ends of one TLS connection see and nobody between them can forge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelBinding(Arc<[u8]>);

impl ChannelBinding {
    /// From the certificate's hash, as RFC 5929 §4.1 says.
    #[must_use]
    pub fn tls_server_end_point(hash: &[u8]) -> Self {
        Self(hash.into())
    }
}

/// What the client must repeat in its second message, in base64: its own header, and the binding where it has one.
/// `flag` is the header's first part, `bound` whether the client chose [`MECHANISM_PLUS`].
pub(super) fn expected(
    flag: Option<&str>,
    bound: bool,
    offered: Option<&ChannelBinding>,
) -> Result<Cow<'static, str>, ScramError> {
    match (flag, bound, offered) {
        (Some("n"), false, _) => Ok("biws".into()),
        // The client could bind the channel but saw that it was not offered, which is true.
        (Some("y"), false, None) => Ok("eSws".into()),
        // It was offered: somebody between us took it away.
        (Some("y"), false, Some(_)) => Err(ScramError::ChannelBindingStripped),
        (Some("n" | "y"), true, _) => {
            Err(ScramError::Malformed("channel binding chosen, but no binding sent"))
        }
        (Some(flag), _, offered) if flag.starts_with("p=") => match offered {
            None => Err(ScramError::ChannelBinding),
            Some(_) if !bound => Err(ScramError::Malformed("channel binding sent, but not chosen")),
            Some(_) if &flag[2..] != TYPE => Err(ScramError::ChannelBindingType),
            Some(ChannelBinding(hash)) => {
                let header = [b"p=", TYPE.as_bytes(), b",,", hash].concat();
                Ok(STANDARD.encode(header).into())
            }
        },
        _ => Err(ScramError::Malformed("unexpected channel-binding flag")),
    }
}

#[cfg(test)]
mod tests;
