//! holdfast: pooling.
