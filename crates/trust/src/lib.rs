//! Who is who in a network: identities, certificates, tokens, contracts' signatures, join links, revocations.

pub mod api;
