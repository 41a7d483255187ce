//! The daemon `mta`.
fn main() {}
