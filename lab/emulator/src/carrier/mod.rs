//! What carries packets between the namespaces of hosts: the driver of our routers with TUN devices
//! or packet sockets, or the kernel with tc.

pub(crate) mod driver;
pub(crate) mod flood;
pub(crate) mod hosts;
pub(crate) mod interfaces;
pub(crate) mod kernel;
pub(crate) mod kind;
pub(crate) mod path;
pub(crate) mod ports;
pub(crate) mod tap;
pub(crate) mod taps;
