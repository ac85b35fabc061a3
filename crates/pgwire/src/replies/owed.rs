//! One reply that is owed.

use super::Origin;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Bind,
    Close,
    /// CopyDone or CopyFail: brings no reply of its own, but ends the stretch in which the server ignores Sync.
    CopyEnd,
    Describe,
    Execute,
    FunctionCall,
    Parse,
    Query,
    Sync,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Owed {
    pub(super) kind: Kind,
    pub(super) origin: Origin,
    /// Its fate is told by [`super::ReplyQueue::take_settled`].
    pub(super) effect: bool,
    /// The server knows nothing of it.
    pub(super) simulated: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Copy {
    Both,
    In,
    None,
    Out,
}

impl Kind {
    pub(super) const fn brings_ready(self) -> bool {
        matches!(self, Self::FunctionCall | Self::Query | Self::Sync)
    }

    pub(super) const fn answer(self) -> &'static str {
        match self {
            Self::Bind => "BindComplete",
            Self::Close => "CloseComplete",
            Self::CopyEnd => "nothing",
            Self::Describe => "a description",
            Self::Execute => "the rows or the end of an Execute",
            Self::FunctionCall => "the answer to a function call",
            Self::Parse => "ParseComplete",
            Self::Query => "the answer to a query",
            Self::Sync => "ReadyForQuery",
        }
    }
}
