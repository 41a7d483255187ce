//! A heading as people read it: a label and a value for each field that it has, in a fixed order.

use crate::form::{self, Requests};
use base::shown;
use p1::security_label::SecurityLabel;
use p772::{
    Acp127Response, Addressing, AutoSubmitted, Heading, Importance, MessageType, Military,
    MmhsPrecedence, Notification, NotificationOutcome, OrDescriptor, PilotInformation,
    RawExtension, RecipientSpecifier, Sensitivity,
};

/// One field of a heading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its label, at most 12 characters.
    pub label: &'static str,
    /// Its value for a terminal: one line, nothing in it that a terminal obeys.
    pub shown: String,
    /// Its value as the originator wrote it: not for a terminal.
    pub value: String,
}

/// Most users that are named in one field; the rest is counted.
pub const MAX_NAMED: usize = 20;
/// Most entries of a repeated field.
const MAX_REPEATED: usize = 64;

/// Fields as they are collected.
#[derive(Default)]
struct Fields(Vec<Field>);

impl Fields {
    fn add(&mut self, label: &'static str, value: impl Into<String>) {
        let value = value.into();
        if !value.is_empty() {
            self.0.push(Field { label, shown: shown::line(&value).into_owned(), value });
        }
    }

    fn maybe(&mut self, label: &'static str, value: Option<impl Into<String>>) {
        if let Some(value) = value {
            self.add(label, value);
        }
    }

    /// A field for each, up to a bound.
    fn each(&mut self, label: &'static str, values: impl ExactSizeIterator<Item = String>) {
        let more = values.len().saturating_sub(MAX_REPEATED);
        values.take(MAX_REPEATED).for_each(|value| self.add(label, value));
        if more > 0 {
            self.add(label, format!("and {more} more"));
        }
    }

    /// One field for all, up to a bound.
    fn joined(&mut self, label: &'static str, values: impl ExactSizeIterator<Item = String>) {
        let more = values.len().saturating_sub(MAX_NAMED);
        let mut named: Vec<String> = values.take(MAX_NAMED).collect();
        if more > 0 {
            named.push(format!("and {more} more"));
        }
        self.add(label, named.join("; "));
    }
}

/// Every field that a heading has. Identifier and unknown extensions are last.
pub fn fields(heading: &Heading) -> Vec<Field> {
    let mut f = Fields::default();
    let military = &heading.military;
    f.maybe("from", heading.originator.as_ref().map(user));
    f.joined("authorised", heading.authorizing_users.iter().map(user));
    f.joined("to", heading.primary_recipients.iter().map(recipient));
    f.joined("copy", heading.copy_recipients.iter().map(recipient));
    f.joined("blind copy", heading.blind_copy_recipients.iter().map(recipient));
    f.joined("exempted", military.exempted_addresses.iter().map(user));
    addressing(&mut f, military);
    f.joined("reply to", heading.reply_recipients.iter().map(user));
    f.maybe("subject", heading.subject.as_deref());
    f.maybe("precedence", military.primary_precedence.map(precedence));
    f.maybe("copy prec.", military.copy_precedence.map(precedence));
    f.maybe("DTG", military.authorised_at.map(base::Utc::to_utc_time));
    of_military(&mut f, military);
    f.maybe("reply by", heading.reply_time.map(base::Utc::to_utc_time));
    f.maybe("expires", heading.expiry_time.map(base::Utc::to_utc_time));
    f.maybe("in reply to", heading.replied_to.as_ref().map(form::show_ipm));
    f.each("obsoletes", heading.obsoleted.iter().map(form::show_ipm));
    f.each("related", heading.related.iter().map(form::show_ipm));
    f.add("importance", importance(heading.importance));
    f.maybe("sensitivity", heading.sensitivity.map(sensitivity));
    f.joined("language", heading.languages.iter().cloned());
    if heading.auto_forwarded {
        f.add("forwarded", "automatically");
    }
    f.maybe("submitted", heading.auto_submitted.map(auto_submitted));
    if heading.incomplete_copy {
        f.add("incomplete", "body parts or recipients are missing in this copy");
    }
    f.add("IPM id", form::show_ipm(&heading.this_ipm));
    f.each("extension", heading.extensions.iter().map(extension));
    f.0
}

fn addressing(f: &mut Fields, military: &Military) {
    f.each(
        "address list",
        military.address_lists.iter().map(|list| {
            let mut words = vec![addressed(list.addressing).to_owned()];
            let requests = [("notify", list.notification_request), ("reply", list.reply_request)];
            for (what, whom) in requests {
                words.extend(whom.map(|whom| format!("{what}={}", list_request(whom))));
            }
            format!("{} [{}]", user(&list.list), words.join(","))
        }),
    );
    f.joined(
        "other",
        military
            .other_recipients
            .iter()
            .map(|other| format!("{} [{}]", other.designator, addressed(other.addressing))),
    );
}

fn of_military(f: &mut Fields, military: &Military) {
    let codes = &military.distribution_codes;
    f.add("SIC", codes.sics.join(", "));
    f.each("distribution", codes.extensions.iter().map(|e| format!("{} octets", e.len())));
    f.maybe("type", military.message_type.as_ref().map(message_type));
    f.each("handling", military.handling_instructions.iter().cloned());
    f.each("instruction", military.message_instructions.iter().cloned());
    f.maybe("reference", military.originator_reference.as_deref());
    f.maybe("PLAD", military.originator_plad.as_deref());
    f.maybe("ACP 127 id", military.acp127_message_identifier.as_deref());
    f.maybe("codress", military.codress.map(|n| n.to_string()));
    f.each("pilot", military.pilot_forwarding.iter().map(pilot));
    if let Some(labels) = &military.information_labels {
        f.add("info label", labels.content.to_string());
        f.maybe("info label", labels.heading.as_ref().map(|l| format!("{l} (the heading)")));
        f.each(
            "info label",
            labels.body_parts.iter().map(|part| match part.number {
                Some(n) => format!("{} (body part {n})", part.label),
                None => format!("{} (a body part)", part.label),
            }),
        );
    }
}

/// What a notification states, and about which message.
pub fn notification(notification: &Notification) -> Vec<Field> {
    let mut f = Fields::default();
    f.maybe("from", notification.originator.as_ref().map(user));
    f.maybe("recipient", notification.intended_recipient.as_ref().map(user));
    f.add("about", form::show_ipm(&notification.subject_ipm));
    f.add("outcome", outcome(&notification.outcome));
    match &notification.outcome {
        NotificationOutcome::Receipt(receipt) => f.maybe("adds", receipt.supplementary.as_deref()),
        NotificationOutcome::NonReceipt(fields) => {
            f.maybe("adds", fields.auto_forward_comment.as_deref());
            f.maybe("returned", fields.returned.as_ref().map(|m| format!("{} octets", m.len())));
        }
        NotificationOutcome::Other(_) => {}
    }
    f.0
}

/// What happened to a message, in words.
pub fn outcome(outcome: &NotificationOutcome) -> String {
    match outcome {
        NotificationOutcome::Receipt(receipt) => {
            let who = match receipt.mode {
                p772::AcknowledgmentMode::Manual => "read",
                p772::AcknowledgmentMode::Automatic => "acknowledged automatically",
            };
            let at = receipt.time.map(|at| format!(" at {}", at.to_utc_time()));
            format!("{who}{}", at.unwrap_or_default())
        }
        NotificationOutcome::NonReceipt(fields) => fields.to_string(),
        NotificationOutcome::Other(fields) => {
            let known = fields.iter().find_map(Acp127Response::from_extension);
            match (known, fields.first()) {
                (Some(answer), _) => acp127(&answer),
                (None, Some(field)) => format!("another notification: {}", extension(field)),
                (None, None) => "another notification, without a field".to_owned(),
            }
        }
    }
}

fn acp127(answer: &Acp127Response) -> String {
    let kinds = [
        (answer.kinds.positive, "positive"),
        (answer.kinds.negative, "negative"),
        (answer.kinds.transfer, "transfer"),
    ];
    let kinds: Vec<&str> = kinds.iter().filter(|kind| kind.0).map(|kind| kind.1).collect();
    let mut words = format!("ACP 127 notification ({})", kinds.join(", "));
    if let Some(at) = answer.receipt_time {
        words.push_str(&format!(" at {}", at.to_utc_time()));
    }
    for (what, value) in [("for", &answer.recipient), ("the gateway adds", &answer.supplementary)] {
        if let Some(value) = value {
            words.push_str(&format!(", {what} {value}"));
        }
    }
    words
}

/// A user: the address, else the words and the telephone number.
pub fn user(of: &OrDescriptor) -> String {
    let address = of.formal_name.as_ref().map(|name| name.address.to_string());
    let mut words: Vec<String> = address.filter(|a| !a.is_empty()).into_iter().collect();
    for more in [&of.free_form_name, &of.telephone_number].into_iter().flatten() {
        words.push(if words.is_empty() { more.clone() } else { format!("({more})") });
    }
    if words.is_empty() { "?".to_owned() } else { words.join(" ") }
}

/// A recipient and what is asked of it, in the form of `xuxa send --to`.
pub fn recipient(of: &RecipientSpecifier) -> String {
    let requests = Requests {
        notifications: of.notification_requests,
        reply: of.reply_requested,
        acp127: of.acp127_request,
        report: None,
    };
    let (name, asked) = (user(&of.recipient), requests.names());
    if asked.is_empty() { name } else { format!("{name} [{}]", asked.join(",")) }
}

/// A precedence by its name; others by number, national ones as such.
pub fn precedence(value: MmhsPrecedence) -> String {
    match value.level() {
        Some(level) => level.to_string(),
        None if value.value() >= 16 => format!("{} (national)", value.value()),
        None => format!("{} (reserved)", value.value()),
    }
}

/// The form of `xuxa send --message-type`; kinds without a name are numbers.
pub fn message_type(message_type: &MessageType) -> String {
    let kind = match message_type.kind {
        MessageType::EXERCISE => "exercise".to_owned(),
        MessageType::OPERATION => "operation".to_owned(),
        MessageType::PROJECT => "project".to_owned(),
        MessageType::DRILL => "drill".to_owned(),
        other => other.to_string(),
    };
    match &message_type.identifier {
        Some(name) => format!("{kind}={name}"),
        None => kind,
    }
}

fn addressed(addressing: Addressing) -> &'static str {
    match addressing {
        Addressing::Primary => "action",
        Addressing::Copy => "info",
    }
}

fn list_request(whom: u8) -> &'static str {
    match whom {
        0 => "action",
        1 => "info",
        _ => "both",
    }
}

/// In the form of `xuxa send --pilot`.
fn pilot(of: &PilotInformation) -> String {
    let mut words = Vec::new();
    words.extend(of.precedence.map(|p| format!("precedence={}", precedence(p))));
    words.extend(of.recipients.iter().take(MAX_NAMED).map(|to| format!("to={}", user(to))));
    words.extend(of.label.as_ref().map(|label: &SecurityLabel| format!("label={label}")));
    words.extend(of.handling.iter().take(MAX_NAMED).map(|text| format!("handling={text}")));
    if words.is_empty() { "-".to_owned() } else { words.join(" | ") }
}

/// Nothing for a normal importance, which is the default.
fn importance(importance: Importance) -> &'static str {
    match importance {
        Importance::Low => "low",
        Importance::Normal => "",
        Importance::High => "high",
    }
}

fn sensitivity(sensitivity: Sensitivity) -> &'static str {
    match sensitivity {
        Sensitivity::Personal => "personal",
        Sensitivity::Private => "private",
        Sensitivity::CompanyConfidential => "company-confidential",
    }
}

fn auto_submitted(auto: AutoSubmitted) -> &'static str {
    match auto {
        AutoSubmitted::No => "by a person",
        AutoSubmitted::Generated => "automatically",
        AutoSubmitted::Replied => "automatically, as a reply",
    }
}

fn extension(extension: &RawExtension) -> String {
    let length = extension.value.as_ref().map_or(0, Vec::len);
    format!("{}, {length} octets", extension.kind)
}
