//! holdfast: drill.
