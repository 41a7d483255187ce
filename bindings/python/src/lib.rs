//! The compiled part of the Python package `xuxa`: the user agent on a message store.

mod entry;
mod errors;
mod mailbox;
mod message;
mod submission;

use pyo3::prelude::*;

/// The module `xuxa._xuxa`.
#[pymodule]
fn _xuxa(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<mailbox::Mailbox>()?;
    module.add_class::<mailbox::Entries>()?;
    module.add_class::<mailbox::Alerts>()?;
    module.add_class::<entry::Entry>()?;
    module.add_class::<message::Message>()?;
    module.add_class::<message::File>()?;
    module.add_class::<submission::Submitted>()
}
