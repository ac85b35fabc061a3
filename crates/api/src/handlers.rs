//! One function for each route.

pub(crate) mod accounts;
pub(crate) mod clients;
pub(crate) mod contracts;
pub(crate) mod finding;
pub(crate) mod grants;
pub(crate) mod health;
pub(crate) mod joining;
pub(crate) mod pools;
pub(crate) mod proxies;
