//! Files that people write, and tables that they read.
//!
//! [`toml_file`] reads a TOML file and reports each error at its line and column. [`TextTable`] is a table
//! whose cells cannot control a terminal. [`UsageError`] marks an error as one of the user's.

mod cells;
pub mod toml_file;
mod usage;

pub use cells::TextTable;
pub use usage::UsageError;
