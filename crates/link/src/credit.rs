//! How much may be sent on a stream (§5).
//!
//! Credit counts the payload bytes of DATA. The receiver grants what it has room for: at first a window, and again as
//! what came is consumed. A window that is used up quickly grows, so that long ways carry much and short ones hold little; and
//! shrinks again where others need the link ([`Sharing`]): what lies in a queue is shared by the size of windows, so that the
//! streams that grew first would have nearly all of it.

use overload::Moment;
use std::time::Duration;

/// A window that was consumed within this time was too small, or just right: it doubles.
const GROWS_WITHIN: Duration = Duration::from_millis(200);
/// Windows of the active streams of one connection, together: a way of 1 Gbit/s and 130 ms.
const SHARED_WINDOW_BYTES: u32 = 16 * 1024 * 1024;
/// A stream that has consumed nothing for one to two of these spans is not active.
const ACTIVE_SPAN: Duration = Duration::from_millis(500);

/// More was sent than was granted: a fault of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more was sent than was granted")]
pub struct Overrun;

/// What one end may still send.
#[derive(Clone, Copy, Debug, Default)]
pub struct SendCredit(u64);

impl SendCredit {
    /// With the window of OPEN or OPENED.
    #[must_use]
    pub const fn new(window: u32) -> Self {
        Self(window as u64)
    }

    /// Payload bytes that may be sent now.
    #[must_use]
    pub const fn available(self) -> u64 {
        self.0
    }

    /// So many were sent.
    ///
    /// # Errors
    /// They were more than was granted; nothing is changed.
    pub const fn spend(&mut self, bytes: usize) -> Result<(), Overrun> {
        match self.0.checked_sub(bytes as u64) {
            Some(rest) => {
                self.0 = rest;
                Ok(())
            }
            None => Err(Overrun),
        }
    }

    /// CREDIT came.
    pub const fn grant(&mut self, bytes: u32) {
        self.0 = self.0.saturating_add(bytes as u64);
    }
}

/// What the other end may still send, and when to let it send more.
#[derive(Clone, Copy, Debug)]
pub struct ReceiveCredit {
    /// Granted and not received.
    outstanding: u32,
    /// Received, consumed, and not granted again.
    consumed: u32,
    window: u32,
    least: u32,
    greatest: u32,
    granted_at: Moment,
    /// The span in which it was counted as active.
    counted_in: u64,
}

impl ReceiveCredit {
    /// The first window and the greatest one.
    #[must_use]
    pub const fn new(window: u32, greatest: u32, now: Moment) -> Self {
        let greatest = if greatest < window { window } else { greatest };
        Self {
            outstanding: window,
            consumed: 0,
            window,
            least: window,
            greatest,
            granted_at: now,
            counted_in: 0,
        }
    }

    /// So many payload bytes came.
    ///
    /// # Errors
    /// They are more than was granted: the stream is to be reset.
    pub fn receive(&mut self, bytes: usize) -> Result<(), Overrun> {
        let bytes = u32::try_from(bytes).map_err(|_| Overrun)?;
        self.outstanding = self.outstanding.checked_sub(bytes).ok_or(Overrun)?;
        Ok(())
    }

    /// So many of them have been passed on. What is to be granted now, if anything: half a window at the least, so that
    /// grants are few.
    pub fn consume(&mut self, bytes: usize, now: Moment, sharing: &mut Sharing) -> Option<u32> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.consumed = self.consumed.saturating_add(bytes).min(self.window);
        if self.consumed < self.window / 2 {
            return None;
        }
        let most = sharing.share(&mut self.counted_in, now).clamp(self.least, self.greatest);
        let mut grant = self.consumed;
        if self.window > most {
            let less = (self.window - most).min(grant);
            self.window -= less;
            grant -= less;
        } else if now.since(self.granted_at) <= GROWS_WITHIN && self.window < most {
            let grown = self.window.saturating_mul(2).min(most);
            grant += grown - self.window;
            self.window = grown;
        }
        self.granted_at = now;
        self.consumed = 0;
        self.outstanding = self.outstanding.saturating_add(grant);
        (grant > 0).then_some(grant)
    }

    /// What may lie here at most.
    #[must_use]
    pub const fn window(&self) -> u32 {
        self.window
    }
}

/// How many streams of one connection are active, and how large a window of theirs may be.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sharing {
    span: u64,
    active: u32,
    active_before: u32,
}

impl Sharing {
    /// The window of one stream, which is active now; `counted_in` is the stream's own note of when it was last counted.
    fn share(&mut self, counted_in: &mut u64, now: Moment) -> u32 {
        // From 1 on: a stream that was never counted says 0.
        let span = 1 + now.as_micros() / ACTIVE_SPAN.as_micros() as u64;
        if span != self.span {
            self.active_before = if span == self.span + 1 { self.active } else { 0 };
            self.active = 0;
            self.span = span;
        }
        if *counted_in != span {
            *counted_in = span;
            self.active = self.active.saturating_add(1);
        }
        SHARED_WINDOW_BYTES / self.active.max(self.active_before).max(1)
    }
}

#[cfg(test)]
mod tests;
