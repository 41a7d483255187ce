//! A site for tests.

use crate::config::{self, Site};
use std::path::Path;

/// The shipped site `naples`.
pub(crate) fn example_site() -> Site {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/sites");
    let text = std::fs::read_to_string(format!("{directory}/naples.toml")).unwrap();
    let secret = |name: &str| Some(name.to_owned());
    config::read("naples.toml", &text, Path::new(directory), &secret).0.unwrap()
}
