//! The egress node: it dials out to a relay, and carries streams to the world by its owner's rules.

pub mod exit;
