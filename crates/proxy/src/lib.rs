//! SOCKS5 and HTTP CONNECT in, a stream through a provider out.
