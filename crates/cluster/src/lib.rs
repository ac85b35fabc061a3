//! What a private PostgreSQL needs from the machine: the server's programs, and an account that is not root. Shared by
//! `holdfast up`, whose server stays, and by the drills, whose servers vanish.

mod account;
mod binaries;

pub use account::{Account, NoAccount};
pub use binaries::{Binaries, MissingServer};
