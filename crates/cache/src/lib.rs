//! The cache: get and put with expiry, leases, counters and hints. It is never the truth.
