//! Messages and reports between sites: each arrives whole, once, at the right user.

mod cancelled;
mod contexts;
mod delivered;
mod earlier;
mod labels;
mod pair;
mod red_book;
mod redirected;
mod registered;
mod returned;
