//! One TLS connection without I/O, and its exporter.
