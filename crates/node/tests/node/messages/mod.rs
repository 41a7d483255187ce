//! Messages and reports between sites: each arrives whole, once, at the right user.

mod cancelled;
mod delivered;
mod earlier;
mod pair;
mod redirected;
mod returned;
