//! What a server tells between AuthenticationOk and ReadyForQuery.

use super::{
    MAX_SERVER_PARAMETER_BYTES, MAX_SERVER_PARAMETERS, ServerLoginError, ServerReady, TransactionStatus,
};
use crate::message::parse::{self, MalformedMessage};
use crate::secret::{CancelKey, SecretKey};

/// Gathered so far.
#[derive(Debug, Default)]
pub(super) struct Session {
    cancel_key: Option<CancelKey>,
    parameters: Vec<(String, String)>,
    parameter_bytes: usize,
}

impl Session {
    pub(super) fn add_parameter(&mut self, body: &[u8]) -> Result<(), ServerLoginError> {
        let (name, value) = parse::parameter_status(body)?;
        let [name, value] = [name, value].map(String::from_utf8_lossy);
        match self.parameters.iter_mut().find(|(known, _)| *known == name) {
            Some((_, earlier)) => {
                self.parameter_bytes = self.parameter_bytes - earlier.len() + value.len();
                *earlier = value.into_owned();
            }
            None => {
                self.parameter_bytes += name.len() + value.len();
                self.parameters.push((name.into_owned(), value.into_owned()));
            }
        }
        if self.parameters.len() > MAX_SERVER_PARAMETERS || self.parameter_bytes > MAX_SERVER_PARAMETER_BYTES
        {
            return Err(ServerLoginError::TooManyParameters);
        }
        Ok(())
    }

    pub(super) fn set_key(&mut self, body: &[u8]) -> Result<(), ServerLoginError> {
        let (process_id, secret) = parse::backend_key_data(body)?;
        let wrong = MalformedMessage { message: "BackendKeyData", reason: "wrong length" };
        let secret = SecretKey::new(secret).ok_or(wrong)?;
        self.cancel_key = Some(CancelKey { process_id, secret });
        Ok(())
    }

    pub(super) fn ready(self, transaction_status: TransactionStatus) -> ServerReady {
        ServerReady { cancel_key: self.cancel_key, parameters: self.parameters, transaction_status }
    }
}
