//! A draft of the interface as a message to submit.

use p1::extension::ExtensionField;
use p1::flags::ReportRequest;
use p1::names::ORName;
use p772::{Charset, ContentBuilder, Forwarded, IpmIdentifier, PartForm};
use std::path::Path;
use ua::book::Book;
use ua::form::Requests;
use ua::{BodyPart, Content, Message, Recipient, Source};
use xuxa_tui::BackendError;
use xuxa_tui::draft::{About, Body, Draft, Reports};

/// The addresses of recipients as they were typed.
///
/// # Errors
/// The first one that is neither an O/R address nor in the book.
pub(super) fn resolve(book: &Book, typed: &[String]) -> Result<Vec<ORName>, BackendError> {
    let mut found: Vec<ORName> = Vec::new();
    for text in typed {
        let names = book.resolve(text);
        let names = names.map_err(|error| {
            let shown = base::shown::line(text);
            BackendError::Failed(format!(
                "recipient {shown}: {error}. Key 3 shows the address book"
            ))
        })?;
        found.extend(names.into_iter().filter(|name| !found.contains(name)).collect::<Vec<_>>());
    }
    Ok(found)
}

/// What a message has beside its draft.
#[derive(Debug, Default)]
pub(super) struct Original {
    /// IPM identifier of what it answers.
    pub answered: Option<IpmIdentifier>,
    /// The message that it passes on.
    pub forwarded: Option<(Forwarded, Source)>,
    /// The security labels of that, which the new envelope has too.
    pub labels: Vec<ExtensionField>,
}

/// Most octets of files that go with a forwarded message: they are held in memory.
const MAX_WITH_FORWARDED: u64 = 64 << 20;

/// The message of a draft.
///
/// # Errors
/// A recipient or a file that cannot be used.
pub(super) fn message(
    draft: &Draft,
    originator: &ORName,
    book: &Book,
    answered: Option<IpmIdentifier>,
) -> Result<Message, BackendError> {
    let wants_receipt = draft.reports == Reports::Receipt;
    let recipients = |typed: &[String]| -> Result<Vec<Recipient>, BackendError> {
        let mut requests = Requests::default();
        requests.notifications.receipt = wants_receipt;
        let names = resolve(book, typed)?;
        Ok(names.into_iter().map(|name| Recipient { name, requests }).collect())
    };
    let (to, copy) = (recipients(&draft.to)?, recipients(&draft.copy)?);
    let mut parts = vec![match &draft.body {
        Body::Text(text) => BodyPart::text(text),
        Body::Canned(size) => {
            BodyPart { form: PartForm::Text(Charset::Ascii), source: Source::Canned(*size) }
        }
    }];
    for path in &draft.files {
        parts.push(file(path)?);
    }
    let Some(last) = parts.pop() else {
        return Err(BackendError::Failed("a message has at least one body part".to_owned()));
    };
    let mut message =
        Message::canned(originator.clone(), Vec::new(), draft.precedence, 0, &draft.identifier);
    (message.to, message.copy) = (to, copy);
    message.authorised_at = draft.time;
    message.subject = Some(draft.subject.clone()).filter(|subject| !subject.is_empty());
    message.sics.clone_from(&draft.sics);
    message.report = match draft.reports {
        Reports::NonDelivery => ReportRequest::NonDelivery,
        Reports::Delivery | Reports::Receipt => ReportRequest::Report,
    };
    (message.form, message.source, message.parts) = (last.form, last.source, parts);
    if let (About::Answer(_), Some(answered)) = (draft.about, answered) {
        message.heading.replied_to = Some(answered);
    }
    Ok(message)
}

/// The content of a message, with the message that it passes on as its last body part.
///
/// # Errors
/// The heading cannot be written, a file cannot be read, or there is too much beside the forwarded message.
pub(super) fn content(
    message: Message,
    forwarded: Option<(Forwarded, Source)>,
) -> Result<Content, BackendError> {
    let failed = |error: anyhow::Error| BackendError::Failed(format!("{error:#}"));
    let Some((forwarded, source)) = forwarded else {
        return message.content().map_err(failed);
    };
    if message.size() > MAX_WITH_FORWARDED {
        let text =
            "a forwarded message takes at most 64 MiB of text and files with it: send them apart";
        return Err(BackendError::Failed(text.to_owned()));
    }
    let builder = ContentBuilder::new(&message.full_heading());
    let mut builder = builder.map_err(|error| BackendError::Failed(error.to_string()))?;
    let last = BodyPart { form: message.form, source: message.source };
    for part in message.parts.into_iter().chain([last]) {
        let mut octets = Vec::new();
        loop {
            let piece = part.source.read(octets.len() as u64, 1 << 20).map_err(failed)?;
            if piece.is_empty() {
                break;
            }
            octets.extend_from_slice(&piece);
        }
        let is_nothing = octets.is_empty() && matches!(part.form, PartForm::Text(_));
        if !is_nothing {
            builder = builder.part(&part.form, &octets);
        }
    }
    let head = builder.finish_forwarding(&forwarded, source.len()).head;
    Ok(Content { head: head.into(), source })
}

/// A file as a body part with its name.
///
/// # Errors
/// It cannot be read.
pub(super) fn file(path: &Path) -> Result<BodyPart, BackendError> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    let source = Source::open(path);
    let source = source.map_err(|error| BackendError::Failed(format!("Files: {error:#}")))?;
    Ok(BodyPart { form: PartForm::File { name }, source })
}
