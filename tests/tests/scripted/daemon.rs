//! The cases against the daemon, over TCP.
