//! The recurring jobs of a network.
