//! The egress node that people run.
