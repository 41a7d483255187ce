//! Which packets a class takes: access lists, class maps, and the algebra of both.

pub(crate) mod access;
pub(crate) mod algebra;
pub(crate) mod class;
pub(crate) mod work;
