//! Errors as instances of the classes in `xuxa.errors`.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use ua::store::{BadAnswer, BindRefused, MsError, NotSubmitted, StoreError};

/// An instance of a class of `xuxa.errors`.
fn instance<'py>(
    py: Python<'py>,
    class: &str,
    arguments: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
) -> PyErr {
    let made = py
        .import("xuxa.errors")
        .and_then(|module| module.getattr(class))
        .and_then(|class| class.call1(arguments.into_pyobject(py)?));
    // Without its Python part the package is not whole: that error is shown instead.
    made.map_or_else(|error| error, PyErr::from_value)
}

/// An error that has a text alone.
pub(crate) fn plain(py: Python<'_>, class: &str, text: String) -> PyErr {
    instance(py, class, (text,))
}

/// An error of an operation of the store.
pub(crate) fn store(py: Python<'_>, error: &StoreError) -> PyErr {
    let text = error.to_string();
    match error {
        StoreError::NotConnected(_) => plain(py, "NotConnected", text),
        StoreError::Refused(BindRefused::Credentials) => plain(py, "CredentialsRefused", text),
        StoreError::Refused(BindRefused::Busy) => plain(py, "Busy", text),
        StoreError::Refused(_) => plain(py, "BindRefused", text),
        StoreError::Operation(MsError::SequenceNumber(problems)) => {
            let number = problems.first().map_or(0, |(_, number)| number.0);
            let text = format!("the mailbox has no entry {number}");
            instance(py, "NoSuchEntry", (text, number))
        }
        StoreError::Operation(MsError::Access(_)) => plain(py, "SubmissionRefused", text),
        StoreError::Operation(_) | StoreError::Rejected(_) => plain(py, "OperationRefused", text),
        StoreError::Lost(_) => plain(py, "Lost", text),
        StoreError::Interrupted => plain(py, "Interrupted", text),
        StoreError::Answer(BadAnswer::TooLong { .. }) => plain(py, "TooLong", text),
        StoreError::Answer(_) => plain(py, "BadAnswer", text),
        StoreError::Source(_) => plain(py, "InvalidValue", text),
        StoreError::Write(error) | StoreError::Capture(error) => {
            std::io::Error::new(error.kind(), text).into()
        }
    }
}

/// An error of a submission with these labels.
pub(crate) fn submission(
    py: Python<'_>,
    failed: &NotSubmitted,
    content_identifier: &str,
    date_time_group: &str,
) -> PyErr {
    if !failed.is_uncertain {
        return store(py, &failed.error);
    }
    let text = format!("the answer was lost, and the message may be accepted: {}", failed.error);
    instance(py, "InDoubt", (text, content_identifier, date_time_group))
}

/// An argument without a valid value.
pub(crate) fn invalid(py: Python<'_>, text: String) -> PyErr {
    plain(py, "InvalidValue", text)
}

/// The runtime of a mailbox cannot be made.
pub(crate) fn runtime(error: &std::io::Error) -> PyErr {
    PyRuntimeError::new_err(format!("the runtime of xuxa cannot start: {error}"))
}
