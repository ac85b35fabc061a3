//! holdfast: pooler.
