//! An entry of a mailbox as Python sees it.

use base::Utc;
use pyo3::prelude::*;
use ua::store::{Kind, Status};

/// An entry of the mailbox.
#[pyclass(frozen, module = "xuxa")]
#[derive(Clone, Debug)]
pub(crate) struct Entry(pub(crate) ua::store::Entry);

/// A time as a `datetime` in UTC.
fn time(py: Python<'_>, time: Option<Utc>) -> PyResult<Option<Bound<'_, PyAny>>> {
    let Some(time) = time else { return Ok(None) };
    let module = py.import("datetime")?;
    let utc = module.getattr("timezone")?.getattr("utc")?;
    let epoch = module.getattr("datetime")?.call1((1970, 1, 1, 0, 0, 0, 0, utc))?;
    let since = module.getattr("timedelta")?.call1((0, 0, time.0))?;
    epoch.call_method1("__add__", (since,)).map(Some)
}

#[pymethods]
impl Entry {
    #[getter]
    fn number(&self) -> u32 {
        self.0.number
    }

    #[getter]
    fn kind(&self) -> &'static str {
        match self.0.kind {
            Kind::Message => "message",
            Kind::Report => "report",
            Kind::Other(_) => "other",
        }
    }

    #[getter]
    fn status(&self) -> &'static str {
        match self.0.status {
            Status::New => "new",
            Status::Listed => "listed",
            Status::Processed => "processed",
            Status::Other(_) => "other",
        }
    }

    #[getter]
    fn precedence(&self) -> Option<&'static str> {
        self.0.precedence.map(base::Precedence::name)
    }

    #[getter]
    fn identifier(&self) -> Option<String> {
        self.0.identifier.as_ref().map(ToString::to_string)
    }

    #[getter]
    fn content_identifier(&self) -> Option<&str> {
        self.0.content_identifier.as_deref()
    }

    #[getter]
    fn originator(&self) -> Option<String> {
        self.0.originator.as_ref().map(|name| name.address.to_string())
    }

    #[getter]
    fn recipient(&self) -> Option<String> {
        self.0.recipient.as_ref().map(|name| name.address.to_string())
    }

    #[getter]
    fn subject(&self) -> Option<&str> {
        self.0.subject.as_deref()
    }

    #[getter]
    fn size(&self) -> Option<u64> {
        self.0.size
    }

    #[getter]
    fn created<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        time(py, self.0.created)
    }

    #[getter]
    fn delivered<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        time(py, self.0.delivered)
    }

    #[getter]
    fn submitted<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        time(py, self.0.submitted)
    }

    fn __repr__(&self) -> String {
        let precedence = self.precedence().unwrap_or("none");
        format!(
            "<xuxa.Entry {} {} {precedence} {:?}>",
            self.0.number,
            self.kind(),
            self.0.subject.as_deref().unwrap_or_default()
        )
    }
}
