//! holdfast: pgwire.
