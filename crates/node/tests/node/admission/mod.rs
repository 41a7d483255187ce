//! Who gets in, and what others make a node hold and do.

mod access;
mod hoard;
mod slices;
