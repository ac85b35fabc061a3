//! `holdfast up`: a whole small network on one machine. A data folder, a private PostgreSQL, the roles as children, and what has
//! to be right before any of it starts.
//!
//! This room starts processes and watches them; it is no part of any of them. The children are PostgreSQL, the pooler, and all
//! other roles in one process. Which program each child runs is for the roof to say ([`Programs`]).

mod children;
mod cluster;
mod data;
mod demonstration;
mod error;
mod init;
mod preflight;
mod privileges;
mod proof;
mod provision;
mod renewal;
mod settings;
mod state;
mod stop;
mod up;

pub use children::Programs;
pub use cluster::exec as exec_postgres;
pub use data::DataFolder;
pub use demonstration::serve_demonstration;
pub use error::UpError;
pub use init::{InitOptions, Initialised, init};
pub use preflight::{Finding, Severity};
pub use privileges::{become_child, drop_root};
pub use provision::{OPERATOR, Owner};
pub use renewal::{CertificateLine, certificates, renew_certificates};
pub use settings::{Ports, Secrets, Settings};
pub use state::{ChildState, Phase, State, Status, status};
pub use stop::{reset, stop};
pub use up::{Lines, UpOptions, up};
