//! Messages and reports between sites: each arrives whole, once, at the right user.

mod delivered;
mod earlier;
mod pair;
