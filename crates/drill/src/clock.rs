//! The only place of this room that reads the clock or sleeps a thread.

use std::thread;
use std::time::{Duration, Instant};

/// The time now.
#[expect(clippy::disallowed_methods, reason = "this room drives real processes; its one clock is here")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Rests the calling thread.
#[expect(clippy::disallowed_methods, reason = "process states can only be polled; callers bound the wait")]
pub(crate) fn rest(span: Duration) {
    thread::sleep(span);
}

/// Asks `done` again and again until it is true or `limit` has passed; tells whether it became true.
pub(crate) fn wait_for(limit: Duration, mut done: impl FnMut() -> bool) -> bool {
    const STEP: Duration = Duration::from_millis(5);
    let end = now() + limit;
    loop {
        if done() {
            return true;
        }
        if now() >= end {
            return false;
        }
        rest(STEP);
    }
}
