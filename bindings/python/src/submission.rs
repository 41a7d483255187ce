//! A message to submit, from the arguments of `Mailbox.submit`.

use crate::errors;
use base::rng::Rng;
use base::{Precedence, Utc};
use p1::flags::ReportRequest;
use p1::names::ORName;
use p772::{Charset, PartForm};
use pyo3::prelude::*;
use std::path::PathBuf;
use ua::{BodyPart, Clock, Message, Recipient, Source};

/// The MTA has accepted a message.
#[pyclass(frozen, get_all, module = "xuxa")]
#[derive(Debug)]
pub(crate) struct Submitted {
    pub(crate) identifier: String,
    pub(crate) content_identifier: String,
    pub(crate) date_time_group: String,
}

#[pymethods]
impl Submitted {
    fn __repr__(&self) -> String {
        format!("<xuxa.Submitted {}>", self.identifier)
    }
}

/// The arguments.
pub(crate) struct Arguments {
    pub(crate) to: Vec<String>,
    pub(crate) copy: Vec<String>,
    pub(crate) subject: Option<String>,
    pub(crate) text: Option<String>,
    pub(crate) files: Vec<PathBuf>,
    pub(crate) size: Option<u64>,
    pub(crate) precedence: String,
    pub(crate) sics: Vec<String>,
    pub(crate) reports: String,
    pub(crate) civil: bool,
    pub(crate) content_identifier: Option<String>,
    pub(crate) date_time_group: Option<String>,
}

/// An O/R address.
///
/// # Errors
/// `InvalidAddress`.
pub(crate) fn address(py: Python<'_>, text: &str) -> PyResult<ORName> {
    text.parse::<ORName>()
        .map_err(|error| errors::plain(py, "InvalidAddress", format!("{text:?}: {error}")))
}

/// A precedence by its name.
///
/// # Errors
/// `InvalidValue`.
pub(crate) fn precedence(py: Python<'_>, name: &str) -> PyResult<Precedence> {
    name.parse().map_err(|error: base::precedence::UnknownPrecedence| {
        errors::invalid(py, error.to_string())
    })
}

impl Arguments {
    /// The message.
    ///
    /// # Errors
    /// `InvalidAddress` or `InvalidValue`.
    pub(crate) fn message(self, py: Python<'_>, originator: ORName) -> PyResult<Message> {
        let recipients = |names: &[String]| -> PyResult<Vec<Recipient>> {
            names.iter().map(|name| address(py, name).map(Recipient::from)).collect()
        };
        let identifier = match self.content_identifier {
            Some(identifier) => checked(py, identifier)?,
            None => format!("{:016X}", Rng::new(Clock::utc().0 ^ u64::from(std::process::id()) << 44).next_u64()),
        };
        let precedence = precedence(py, &self.precedence)?;
        let mut message = Message::canned(originator, Vec::new(), precedence, 0, &identifier);
        (message.to, message.copy) = (recipients(&self.to)?, recipients(&self.copy)?);
        if message.to.is_empty() && message.copy.is_empty() {
            return Err(errors::invalid(py, "a message needs a recipient".to_owned()));
        }
        message.report = match self.reports.as_str() {
            "none" => ReportRequest::None,
            "non-delivery" => ReportRequest::NonDelivery,
            "delivery" => ReportRequest::Report,
            other => {
                let text = format!("reports={other:?}: use none, non-delivery or delivery");
                return Err(errors::invalid(py, text));
            }
        };
        if let Some(dtg) = &self.date_time_group {
            message.authorised_at = Utc::from_utc_time(dtg.as_bytes()).ok_or_else(|| {
                errors::invalid(py, format!("date_time_group={dtg:?}: write 260504030201Z"))
            })?;
        }
        (message.subject, message.sics, message.civil) = (self.subject, self.sics, self.civil);
        let mut parts = Vec::new();
        match (self.text, self.size) {
            (Some(_), Some(_)) => {
                return Err(errors::invalid(py, "give text or size, not both".to_owned()));
            }
            (Some(text), None) => parts.push(BodyPart::text(&text)),
            (None, Some(size)) => parts.push(BodyPart {
                form: PartForm::Text(Charset::Ascii),
                source: Source::Canned(size),
            }),
            (None, None) => {}
        }
        for path in &self.files {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            let source = Source::open(path).map_err(|e| errors::invalid(py, format!("{e:#}")))?;
            parts.push(BodyPart { form: PartForm::File { name }, source });
        }
        let last = parts.pop().unwrap_or_else(|| BodyPart::text(""));
        (message.form, message.source, message.parts) = (last.form, last.source, parts);
        Ok(message)
    }
}

/// 1 to 16 characters of PrintableString (X.411 8.2.1.1.1.35).
fn checked(py: Python<'_>, identifier: String) -> PyResult<String> {
    let printable = |c: char| c.is_ascii_alphanumeric() || " '()+,-./:=?".contains(c);
    match (1..=16).contains(&identifier.len()) && identifier.chars().all(printable) {
        true => Ok(identifier),
        false => {
            let text = format!("content_identifier={identifier:?}: 1 to 16 printable characters");
            Err(errors::invalid(py, text))
        }
    }
}
