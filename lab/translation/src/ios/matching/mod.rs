//! The packets of a class: access lists, class maps, and operations on sets of packets.

pub(crate) mod access;
pub(crate) mod algebra;
pub(crate) mod class;
pub(crate) mod merged;
pub(crate) mod work;
