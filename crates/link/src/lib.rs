//! The network's own protocol without I/O: frames, sessions, credit, sealing, pacing (`docs/protocol.md`).
