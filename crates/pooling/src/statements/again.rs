//! A batch that may be sent once more: its plan was stale, and its client has seen nothing of it.

/// Longest batch that is kept for that.
const MAX_BYTES: usize = 16 * 1024;

/// What a request is made of, as far as it matters for that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shape(u8);

impl Shape {
    /// Bind of a named statement.
    pub(crate) const BIND: Self = Self(1);
    /// Describe.
    pub(crate) const DESCRIBE: Self = Self(1 << 1);
    /// Sync.
    pub(crate) const SYNC: Self = Self(1 << 2);
    /// Execute and Flush.
    pub(crate) const EXECUTE: Self = Self(0);
    /// Anything else: it must not happen twice, or nobody can tell.
    pub(crate) const OTHER: Self = Self(1 << 3);

    /// Another message follows. Nothing may follow the Sync.
    #[inline]
    pub(crate) const fn add(&mut self, message: Self) {
        let is_over = self.0 & Self::SYNC.0 != 0;
        self.0 |= if is_over { Self::OTHER.0 } else { message.0 };
    }

    /// A single batch that only uses what is prepared, and whose client asks what the rows look like: it will not take new
    /// rows for old ones.
    const fn may_be_repeated(self) -> bool {
        self.0 == Self::BIND.0 | Self::DESCRIBE.0 | Self::SYNC.0
    }
}

/// The present request of a server's client, as it came.
#[derive(Debug, Default)]
pub(crate) struct Again {
    request: Vec<u8>,
    is_due: bool,
}

impl Again {
    /// A request goes out; `is_whole`: all of it, and nothing else is under way.
    #[inline]
    pub(crate) fn note(&mut self, request: &[u8], shape: Shape, is_whole: bool) {
        self.forget();
        if is_whole && shape.may_be_repeated() && request.len() <= MAX_BYTES {
            self.request.extend_from_slice(request);
        }
    }

    /// The client has seen some of the answer, or is gone.
    #[inline]
    pub(crate) fn forget(&mut self) {
        if !self.request.is_empty() {
            self.request.clear();
            self.is_due = false;
        }
    }

    /// The plan was stale: true if the request will be repeated, so that its client need not hear of it.
    pub(crate) const fn ask_for(&mut self) -> bool {
        self.is_due = !self.request.is_empty();
        self.is_due
    }

    /// True between the error and the end of its batch.
    pub(crate) const fn is_due(&self) -> bool {
        self.is_due
    }

    /// The request, once.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.is_due = false;
        std::mem::take(&mut self.request)
    }
}
