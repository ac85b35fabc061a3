//! The library for whoever joins a network: dial, hello, streams, and the api's calls.
