//! What can befall a pooler: dead, frozen, restarted and unreachable databases, logins that cannot work, no descriptors
//! left. Each test asks for three things: a clear error to the client, nothing leaked, and service back without a
//! restart. `HOLDFAST_LONG=1` adds the long forms.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[path = "support/support.rs"]
mod support;

#[path = "faults/backends.rs"]
mod backends;
#[path = "faults/descriptors.rs"]
mod descriptors;
#[path = "faults/frozen.rs"]
mod frozen;
#[path = "faults/ledger.rs"]
mod ledger;
#[path = "faults/load.rs"]
mod load;
#[path = "faults/logins.rs"]
mod logins;
#[path = "faults/stub.rs"]
mod stub;
#[path = "faults/unreachable.rs"]
mod unreachable;
