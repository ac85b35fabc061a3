//! Which addresses and ports may be reached.
