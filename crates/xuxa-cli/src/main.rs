//! The client `xuxa`.
fn main() {}
