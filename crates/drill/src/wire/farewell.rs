//! The ways to end a query or a connection, kind and unkind.

use tokio::io::AsyncWriteExt as _;

use super::address::Address;
use super::connection::Connection;
use super::error::{Error, ServerError};
use super::frame;

impl Connection {
    /// Sends a CancelRequest for this session on a connection of its own, and waits until the other side has closed
    /// that one (after which, on a server, the signal has been sent).
    ///
    /// # Errors
    /// [`Error::Io`], or no key was given at login.
    pub async fn cancel(&self) -> Result<(), Error> {
        let key = self.cancel_key().ok_or_else(|| Error::Protocol("no BackendKeyData".to_owned()))?;
        Self::cancel_with(&self.address, key.process_id, &key.secret).await
    }

    /// [`Self::cancel`] with any key.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub async fn cancel_with(address: &Address, process_id: u32, secret: &[u8]) -> Result<(), Error> {
        let mut connection = Self::open(address, None).await?;
        connection.send(&frame::cancel_request(process_id, secret)).await?;
        match connection.fill().await {
            Ok(()) => Err(Error::Protocol("an answer to a cancel request".to_owned())),
            Err(error) if error.is_closed() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Leaves in order: Terminate, then close.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub async fn terminate(mut self) -> Result<(), Error> {
        self.send(&frame::terminate()).await
    }

    /// Leaves with a reset (RST) and without a word.
    ///
    /// # Errors
    /// As `setsockopt(2)`.
    pub fn abort(self) -> std::io::Result<()> {
        self.stream.reset_on_close()
    }

    /// Says that nothing more will be sent (FIN), and can go on reading.
    ///
    /// # Errors
    /// As `shutdown(2)`.
    pub async fn half_close(&mut self) -> Result<(), Error> {
        Ok(self.stream.shutdown().await?)
    }

    /// Waits until the other side ends the connection; what it still sends is dropped. Returns an error that it sent
    /// as its last message.
    ///
    /// # Errors
    /// The other side breaks the protocol.
    pub async fn wait_closed(&mut self) -> Result<Option<ServerError>, Error> {
        loop {
            match self.read_message().await {
                Ok(_) => {}
                Err(Error::Closed { after }) => return Ok(after.map(|error| *error)),
                Err(error) if error.is_closed() => return Ok(self.last_error.take()),
                Err(error) => return Err(error),
            }
        }
    }
}
