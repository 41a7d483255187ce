//! A message or report that was fetched.

use crate::entry::Entry;
use base::shown::is_obeyed;
use p1::envelope::ReportType;
use p772::{Charset, ContentEvent, ContentParser, PartKind};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use ua::store::Fetched;

/// Most characters of a safe name.
const MAX_NAME: usize = 100;

/// A file of a message.
#[pyclass(frozen, module = "xuxa")]
#[derive(Clone, Debug)]
pub(crate) struct File {
    name: Option<String>,
    data: Vec<u8>,
}

#[pymethods]
impl File {
    #[getter]
    fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    #[getter]
    fn safe_name(&self) -> String {
        let name = self.name.as_deref().unwrap_or_default();
        let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
        let harmless = last.chars().map(|c| if is_obeyed(c) || c == ':' { '_' } else { c });
        let harmless: String = harmless.take(MAX_NAME).collect();
        match harmless.trim_matches(['.', ' ']).trim_start_matches(['.', '-', ' ']) {
            "" => "file.bin".to_owned(),
            name => name.to_owned(),
        }
    }

    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.data)
    }

    fn __repr__(&self) -> String {
        format!("<xuxa.File {:?}, {} octets>", self.safe_name(), self.data.len())
    }
}

/// Recipient, whether it was delivered, the reason if not.
type Outcome = (String, bool, Option<String>);

/// An entry with its content.
#[pyclass(frozen, module = "xuxa")]
#[derive(Debug)]
pub(crate) struct Message {
    entry: Entry,
    heading: Vec<(String, String)>,
    text: String,
    files: Vec<File>,
    content: Vec<u8>,
    recipients: Vec<Outcome>,
}

#[pymethods]
impl Message {
    #[getter]
    fn entry(&self) -> Entry {
        self.entry.clone()
    }

    #[getter]
    fn heading(&self) -> Vec<(String, String)> {
        self.heading.clone()
    }

    #[getter]
    fn text(&self) -> &str {
        &self.text
    }

    #[getter]
    fn files(&self) -> Vec<File> {
        self.files.clone()
    }

    #[getter]
    fn content<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.content)
    }

    #[getter]
    fn recipients(&self) -> Vec<Outcome> {
        self.recipients.clone()
    }

    fn __repr__(&self) -> String {
        let subject = self.entry.0.subject.as_deref().unwrap_or_default();
        format!("<xuxa.Message {} {subject:?}, {} files>", self.entry.0.number, self.files.len())
    }
}

impl Message {
    /// From what was fetched. A content of a type that cannot be read is there as octets alone.
    pub(crate) fn new(fetched: Fetched, content: Vec<u8>) -> Message {
        let mut message = Message {
            entry: Entry(fetched.entry),
            heading: Vec::new(),
            text: String::new(),
            files: Vec::new(),
            content: Vec::new(),
            recipients: Vec::new(),
        };
        if let Some(report) = &fetched.report {
            let outcome = |recipient: &p1::p3::PerRecipientReportDelivery| {
                let name = recipient.actual_recipient.address.to_string();
                match &recipient.report {
                    ReportType::Delivery { .. } => (name, true, None),
                    ReportType::NonDelivery { reason, diagnostic } => {
                        let more = diagnostic.as_ref().map(|d| format!(", {d}"));
                        let more = more.unwrap_or_default();
                        (name, false, Some(format!("{reason}{more}")))
                    }
                }
            };
            message.recipients = report.recipients.iter().map(outcome).collect();
        }
        message.read(&content);
        message.content = content;
        message
    }

    fn read(&mut self, content: &[u8]) {
        let (mut parser, mut rest) = (ContentParser::new(), content);
        let mut texts: Vec<(Charset, Vec<u8>)> = Vec::new();
        let (mut in_text, mut in_file) = (false, false);
        while let Ok(Some(event)) = parser.next(&mut rest) {
            match event {
                ContentEvent::Heading(heading) => {
                    let fields = ua::heading::fields(&heading).into_iter();
                    self.heading = fields.map(|f| (f.label.to_owned(), f.value)).collect();
                }
                ContentEvent::PartBegin(kind) => {
                    (in_text, in_file) = (false, false);
                    match kind {
                        PartKind::Text(charset) => {
                            texts.push((charset, Vec::new()));
                            in_text = true;
                        }
                        PartKind::File { name } => {
                            self.files.push(File { name, data: Vec::new() });
                            in_file = true;
                        }
                        PartKind::Binary => {
                            self.files.push(File { name: None, data: Vec::new() });
                            in_file = true;
                        }
                        PartKind::Extended { .. } | PartKind::Other { .. } => {}
                    }
                }
                ContentEvent::Data(data) => {
                    if let Some((_, text)) = texts.last_mut().filter(|_| in_text) {
                        text.extend_from_slice(&data);
                    }
                    if let Some(file) = self.files.last_mut().filter(|_| in_file) {
                        file.data.extend_from_slice(&data);
                    }
                }
                ContentEvent::Notification(octets) => {
                    if let Ok(notification) = p772::Notification::parse(&octets) {
                        let fields = ua::heading::notification(&notification).into_iter();
                        self.heading = fields.map(|f| (f.label.to_owned(), f.value)).collect();
                    }
                }
                ContentEvent::PartEnd => {}
                ContentEvent::End => break,
            }
        }
        let texts: Vec<String> = texts.iter().map(|(set, text)| set.decode(text)).collect();
        self.text = texts.join("\n\n");
    }
}
