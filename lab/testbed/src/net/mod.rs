//! Network namespaces, the devices and sockets in them, and the frames that pass.

pub mod batch;
pub(crate) mod cable;
pub mod capture;
pub mod frame;
pub(crate) mod location;
pub mod middle;
pub mod netns;
pub mod ns;
pub mod packet_socket;
pub mod probe;
pub mod tun;
