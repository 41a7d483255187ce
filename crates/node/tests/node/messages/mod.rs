//! Messages and reports between sites: whole, once, and to whom.

mod delivered;
mod earlier;
mod pair;
