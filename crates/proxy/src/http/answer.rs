//! The proxy's own answers.

use std::fmt::Write;

use crate::refusal::Refusal;

use super::response::Behind;

/// The longest `X-Proxy-Exit`.
const MAX_EXIT_BYTES: usize = 64;

/// The answer to a CONNECT that has come about; what follows are the target's bytes.
#[must_use]
pub fn connected(exit: &str) -> String {
    let exit: String = exit.chars().filter(char::is_ascii_graphic).take(MAX_EXIT_BYTES).collect();
    format!("HTTP/1.1 200 Connection established\r\nX-Proxy-Exit: {exit}\r\n\r\n")
}

/// A refusal, with its reason for programs in `X-Proxy-Error` and for people in the body.
#[must_use]
pub fn refused(refusal: &Refusal, behind: Behind) -> String {
    let status = refusal.reason.http_status();
    let (code, cause) = (refusal.reason.label(), refusal.cause_line());
    let mut answer = format!("HTTP/1.1 {status} {}\r\nX-Proxy-Error: {code}\r\n", phrase(status));
    if status == 407 {
        answer.push_str("Proxy-Authenticate: Basic realm=\"holdfast\", charset=\"UTF-8\"\r\n");
    }
    if let Some(after) = refusal.retry_after {
        // Whole seconds, and never a time that has not come yet.
        let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
        let _ = write!(answer, "Retry-After: {}\r\n", seconds.max(1));
    }
    let connection = if behind == Behind::Close { "close" } else { "keep-alive" };
    let length = code.len() + cause.len() + 3;
    let _ = write!(
        answer,
        "Content-Type: text/plain\r\nContent-Length: {length}\r\nConnection: {connection}\r\n\r\n{code}: {cause}\n"
    );
    answer
}

const fn phrase(status: u16) -> &'static str {
    match status {
        400 => "Bad Request",
        402 => "Payment Required",
        403 => "Forbidden",
        407 => "Proxy Authentication Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Error",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::refusal::Reason;

    #[test]
    fn a_refusal_names_its_code_its_cause_and_the_time_to_come_back() {
        let refusal = Refusal::new(Reason::ProvidersResting, "no provider takes streams now");
        let answer = refused(&refusal.after(Duration::from_millis(1_200)), Behind::Close);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 503 Service Unavailable\r\nX-Proxy-Error: providers_resting\r\n"));
        assert!(head.contains("\r\nRetry-After: 2\r\n") && head.ends_with("\r\nConnection: close"), "{head}");
        assert_eq!(body, "providers_resting: no provider takes streams now\n");
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())));
    }

    #[test]
    fn every_status_has_a_phrase_and_407_says_how_to_log_in() {
        for reason in Reason::ALL {
            assert_ne!(phrase(reason.http_status()), "Error", "{reason:?}");
        }
        let answer = refused(&Refusal::new(Reason::LoginRequired, "x"), Behind::KeepAlive);
        assert!(answer.contains("\r\nProxy-Authenticate: Basic realm="), "{answer}");
    }
}
