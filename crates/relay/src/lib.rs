//! The relay: holds the connections of providers, apps and proxies, and moves their streams.
