//! One stream through a provider.

mod io;
mod splice;

pub use splice::{SpliceEnd, SpliceLimits, SpliceReport};

use crate::link::Shared;
use crate::meter::Counter;
use link::Code;
use std::sync::Arc;

/// A stream; what is written is sealed for the other end. Dropping it before both directions have ended resets it.
#[derive(Debug)]
pub struct Stream {
    shared: Arc<Shared>,
    id: u32,
}

impl Stream {
    pub(crate) const fn new(shared: Arc<Shared>, id: u32) -> Self {
        Self { shared, id }
    }

    /// Why it was reset, if it was.
    #[must_use]
    pub fn reset_code(&self) -> Option<Code> {
        match self.shared.lock().streams.get(&self.id) {
            Some(stream) => stream.reset,
            None => Some(Code::Cancelled),
        }
    }

    /// From now on, its bytes are told to `counter` as they pass.
    pub fn set_counter(&self, counter: Arc<dyn Counter>) {
        if let Some(stream) = self.shared.lock().streams.get_mut(&self.id) {
            stream.counter = Some(counter);
        }
    }

    /// Ends it in both directions, and tells the other end why.
    pub fn reset(self, code: Code) {
        let mut state = self.shared.lock();
        state.reset(self.id, code);
        state.flush(&self.shared);
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.forget(self.id);
        state.flush(&self.shared);
        if state.unwanted && state.streams.is_empty() {
            self.shared.poke.notify_one();
        }
    }
}
