//! The SASL messages of a client's login.

use std::sync::Arc;

use super::{LoginError, Outcome};
use crate::message::{backend, parse};
use crate::scram::{
    AwaitClientFinal, AwaitClientFirst, ChannelBinding, MECHANISM, MECHANISM_PLUS, ScramError, Verifier,
};

/// What the client is to send next.
#[derive(Debug)]
pub(super) enum Sasl {
    /// SASLInitialResponse.
    Mechanism(AwaitClientFirst),
    /// The first message, which SASLInitialResponse left out; whether the channel is to be bound.
    First(AwaitClientFirst, bool),
    /// The proof.
    Final(AwaitClientFinal),
}

impl Sasl {
    pub(super) fn new(verifier: Arc<Verifier>, binding: Option<ChannelBinding>, random: &[u8; 32]) -> Self {
        Self::Mechanism(AwaitClientFirst::new(verifier, random).offering(binding))
    }

    pub(super) fn on_message(self, user: &str, body: &[u8]) -> Result<Outcome, LoginError> {
        match self {
            Self::Mechanism(exchange) => {
                let (mechanism, data) = parse::sasl_initial_response(body)?;
                let bound = mechanism == MECHANISM_PLUS.as_bytes() && exchange.offers_binding();
                if !bound && mechanism != MECHANISM.as_bytes() {
                    return Err(LoginError::Mechanism);
                }
                match data {
                    Some(data) => challenge(exchange, bound, data),
                    None => Ok(Outcome::More(Self::First(exchange, bound), challenge_message(&[]))),
                }
            }
            Self::First(exchange, bound) => challenge(exchange, bound, body),
            Self::Final(exchange) => {
                let verified = exchange.finish(body).map_err(|error| match error {
                    ScramError::Proof => LoginError::WrongPassword { user: user.to_owned() },
                    other => LoginError::Scram(other),
                })?;
                // AuthenticationOk is to fit behind it.
                let mut send = Vec::with_capacity(verified.server_final.len() + 18);
                backend::authentication_sasl_final(&mut send, &verified.server_final);
                Ok(Outcome::Accepted(send, Some(verified.keys)))
            }
        }
    }
}

fn challenge(exchange: AwaitClientFirst, bound: bool, client_first: &[u8]) -> Result<Outcome, LoginError> {
    let exchange = if bound { exchange.answer_bound(client_first) } else { exchange.answer(client_first) }?;
    let send = challenge_message(exchange.server_first());
    Ok(Outcome::More(Sasl::Final(exchange), send))
}

fn challenge_message(data: &[u8]) -> Vec<u8> {
    let mut send = Vec::with_capacity(data.len() + 9);
    backend::authentication_sasl_continue(&mut send, data);
    send
}
