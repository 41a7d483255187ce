//! Output for people: aligned tables; and text forms shared with JSON.

use crate::receive::{NotificationLine, Received, ReceivedMessage};
use crate::receive::{ReceivedReport, ReportLine};
use crate::send::{SendOutcome, Sent};
use base::shown;
use comfy_table::{CellAlignment, presets};
use p1::content_type::ContentType;
use p1::flags::Priority;
use p772::RecipientSpecifier;
use std::fmt;
use std::time::Duration;

/// Lower-case hexadecimal.
pub(crate) fn hex(octets: &[u8]) -> String {
    octets.iter().map(|b| format!("{b:02x}")).collect()
}

/// Rate of a content in kbit/s.
pub(crate) fn kbit_s(octets: u64, elapsed: Duration) -> f64 {
    let seconds = elapsed.as_secs_f64().max(1e-6);
    octets as f64 * 8.0 / 1e3 / seconds
}

pub(crate) fn priority(priority: Priority) -> &'static str {
    match priority {
        Priority::NonUrgent => "non-urgent",
        Priority::Normal => "normal",
        Priority::Urgent => "urgent",
    }
}

pub(crate) fn content_type(kind: &ContentType) -> String {
    match kind {
        _ if *kind == ContentType::p772() => "P772".to_owned(),
        ContentType::BuiltIn(2) => "P2".to_owned(),
        ContentType::BuiltIn(22) => "P22".to_owned(),
        ContentType::BuiltIn(number) => number.to_string(),
        ContentType::Extended(oid) => oid.to_string(),
    }
}

pub(crate) use ua::heading::message_type;

/// A recipient of a heading: the address, else its free-form name.
pub(crate) fn recipient(of: &RecipientSpecifier) -> String {
    let of = &of.recipient;
    let address = of.formal_name.as_ref().map(|name| name.address.to_string());
    let address = address.filter(|address| !address.is_empty());
    address.or_else(|| of.free_form_name.clone()).unwrap_or_else(|| "?".to_owned())
}

/// A size with a decimal unit.
pub(crate) fn size(octets: u64) -> String {
    for (unit, factor) in [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)] {
        if octets >= factor {
            return format!("{:.3}", octets as f64 / factor as f64)
                .trim_end_matches('0')
                .trim_end_matches('.')
                .to_owned()
                + " "
                + unit;
        }
    }
    format!("{octets} B")
}

/// A time in milliseconds, or a dash for none.
pub(crate) fn ms(ms: Option<f64>) -> String {
    ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1}"))
}

/// An aligned table; the columns `right` are right-aligned.
pub(crate) fn table(header: &[&str], right: &[usize]) -> Table {
    let mut table = comfy_table::Table::new();
    table.load_preset(presets::NOTHING).set_header(header);
    for column in right {
        if let Some(column) = table.column_mut(*column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    Table(table)
}

/// Bound of the characters in a cell: a longer one would widen every row.
const CELL: usize = 256;

/// A table whose cells are escaped, on one line each, and cut to [`CELL`].
pub(crate) struct Table(comfy_table::Table);

impl Table {
    pub(crate) fn add_row<T: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.0.add_row(cells.into_iter().map(|cell| in_cell(cell.as_ref())));
    }
}

fn in_cell(text: &str) -> String {
    // Escaping never makes a text shorter: the rest cannot be shown.
    let end = text.char_indices().nth(CELL + 1).map_or(text.len(), |(at, _)| at);
    let shown = shown::line(text.get(..end).unwrap_or(text));
    if shown.chars().count() <= CELL {
        return shown.into_owned();
    }
    shown.chars().take(CELL - 1).chain(['…']).collect()
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The messages accepted.
pub(crate) fn sent(lines: &[Sent]) -> Table {
    let mut table = table(&["MTS identifier", "precedence", "size", "time", "kbit/s"], &[2, 3, 4]);
    for line in lines {
        table.add_row([
            line.mts_identifier.clone(),
            line.precedence.to_string(),
            size(line.size),
            format!("{:.1} ms", line.submit_ms),
            format!("{:.0}", line.kbit_s),
        ]);
    }
    table
}

/// A line for each message that was not accepted, with the remedy, and the counts.
pub(crate) fn unsent(outcome: &SendOutcome) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for m in &outcome.in_doubt {
        let (id, dtg, reason) = (&m.content_identifier, &m.dtg, &m.reason);
        lines.push(format!(
            "in doubt: no answer to submission {id} ({reason}); send the same again with \
             --content-identifier {id} --dtg {dtg}"
        ));
    }
    for (what, messages) in [("refused", &outcome.refused), ("not sent", &outcome.not_sent)] {
        lines.extend(
            messages.iter().map(|m| {
                format!("{what}: {}, {}: {}", m.content_identifier, size(m.size), m.reason)
            }),
        );
    }
    if !lines.is_empty() {
        lines.push(format!(
            "{} accepted, {} in doubt, {} refused, {} not sent",
            outcome.messages.len(),
            outcome.in_doubt.len(),
            outcome.refused.len(),
            outcome.not_sent.len()
        ));
    }
    lines.extend(outcome.unbind.iter().map(|error| format!("after the last answer: {error}")));
    lines.iter().map(|line| shown::line(line).into_owned()).collect()
}

/// A warning about a delivery, if it needs one.
pub(crate) fn warning(line: &Received) -> Option<String> {
    match line {
        Received::Message(m) if m.identifier_reused => Some(format!(
            "warning: {} was delivered before with another content: both are kept, and one of them \
             is forged",
            shown::line(&m.mts_identifier)
        )),
        _ => None,
    }
}

/// Details of each message under its identifier.
pub(crate) fn details(lines: &[Received]) -> String {
    let mut out = String::new();
    for line in lines {
        if let Received::Message(m) = line {
            out.push_str(&message_details(m));
        }
    }
    out
}

/// Whom a redirected message was for; empty for another.
fn redirected(intended: &str) -> String {
    match intended {
        "" => String::new(),
        address => format!("it was for {address}"),
    }
}

fn message_details(m: &ReceivedMessage) -> String {
    let mut out = format!("\n{}\n", shown::line(&m.mts_identifier));
    let mut add_line = |what: &str, value: &str| {
        if !value.is_empty() {
            out.push_str(&format!("  {what:<12}  {}\n", shown::line(value)));
        }
    };
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    // The envelope's originator, whom the MTS knows, is shown where the heading names another.
    let has = |label: &str| m.heading.iter().any(|f| f.field == label && f.value == m.originator);
    if !has("from") {
        add_line("originator", &m.originator);
    }
    m.heading.iter().for_each(|field| add_line(field.field, &field.value));
    let listed = |address: &String| *address == m.this_recipient;
    if m.notification.is_none() && !m.to.iter().chain(&m.copy).any(listed) {
        add_line("delivered to", &m.this_recipient);
    }
    add_line("redirected", &redirected(&text(&m.intended_recipient)));
    if let Some(notification) = &m.notification {
        add_line("its subject", &text(&notification.subject));
        add_line("its DTG", &text(&notification.dtg));
    }
    m.labels.iter().for_each(|label| add_line("label", label));
    add_line("content id", &text(&m.content_identifier));
    if m.duplicate {
        add_line("again", "it was delivered before and is kept once");
    }
    if m.identifier_reused {
        add_line("WARNING", "another content has the same identifier: one of the two is forged");
    }
    add_line("kept", &text(&m.file));
    m.extracted.iter().for_each(|file| add_line("extracted", file));
    if m.not_extracted > 0 {
        add_line("WARNING", &format!("{} more files are in its content only", m.not_extracted));
    }
    if let Some(words) = m.text.as_deref().filter(|t| m.text_is_all && !t.is_empty()) {
        let words = shown::text(words);
        // Indented deeper than the details, so that no text can imitate them.
        out.push_str(&format!("\n    {}\n", words.trim_end().replace('\n', "\n    ")));
    }
    out
}

/// The messages and reports received.
pub(crate) fn received(lines: &[Received]) -> Table {
    let header =
        ["what", "from, or about", "precedence", "size", "time", "kbit/s", "subject, or outcome"];
    let mut table = table(&header, &[3, 4, 5]);
    for line in lines {
        match line {
            Received::Message(m) => {
                let what = match (m.duplicate, m.identifier_reused) {
                    (false, false) if m.notification.is_some() => "notification",
                    (true, _) => "message (again)",
                    (false, true) => "message (identifier known)",
                    (false, false) => "message",
                };
                table.add_row([
                    what.to_owned(),
                    m.originator.clone(),
                    m.precedence.map_or_else(|| m.priority.clone(), |p| p.to_string()),
                    size(m.size),
                    format!("{:.1} ms", m.receive_ms),
                    format!("{:.0}", m.kbit_s),
                    match &m.notification {
                        Some(n) => notified(n, m.ipm.as_deref().unwrap_or_default()),
                        None => m.subject.clone().unwrap_or_default(),
                    },
                ]);
            }
            Received::Report(r) => report_rows(&mut table, r),
        }
    }
    table
}

/// What a notification states, and about which message.
fn notified(n: &NotificationLine, ipm: &str) -> String {
    let mut words = format!("{} by {}; message {ipm}", n.outcome, n.recipient);
    for (what, value) in [("subject", &n.subject), ("DTG", &n.dtg)] {
        if let Some(value) = value {
            words.push_str(&format!(", {what} {value}"));
        }
    }
    words
}

/// A row for each recipient, with the message's identifier.
fn report_rows(table: &mut Table, r: &ReceivedReport) {
    let what = if r.duplicate { "report (again)" } else { "report" };
    let mut row = |about: &str, outcome: String| {
        let empty = String::new;
        table.add_row([
            what.to_owned(),
            about.to_owned(),
            empty(),
            empty(),
            empty(),
            empty(),
            outcome,
        ]);
    };
    if r.recipients.is_empty() {
        row("", format!("{}: too long to read, kept unread", size(r.length)));
    }
    let mut message = format!("message {}", r.mts_identifier);
    let known = [("content id", &r.content_identifier), ("subject", &r.subject), ("DTG", &r.dtg)];
    for (what, value) in known {
        if let Some(value) = value {
            message.push_str(&format!(", {what} {value}"));
        }
    }
    if let Some(returned) = &r.returned {
        message.push_str(&format!(", {} of its content returned", size(returned.length)));
        if let Some(file) = &returned.file {
            message.push_str(&format!(" in {file}"));
        }
    }
    for line in &r.recipients {
        row(&line.recipient, format!("{}; {message}", outcome(line)));
    }
}

/// The outcome for one recipient, in words and by the names of X.411.
pub(crate) fn outcome(line: &ReportLine) -> String {
    let supplementary = line
        .supplementary
        .as_ref()
        .map(|supplementary| format!("; the MTA adds {supplementary:?}"));
    let intended = line.intended_recipient.as_ref();
    let intended = intended.map(|address| format!("; redirected, it was for {address}"));
    let supplementary = supplementary.unwrap_or_default() + &intended.unwrap_or_default();
    if line.delivered {
        let at = line.delivery_time.as_ref().map(|at| format!(" at {at}"));
        return format!("delivered{}{supplementary}", at.unwrap_or_default());
    }
    let names: Vec<&str> =
        [&line.reason, &line.diagnostic].into_iter().flatten().map(String::as_str).collect();
    let because = line.because.as_deref().unwrap_or_default();
    format!("not delivered: {because} ({}){supplementary}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receive::HeadingField;
    use crate::send::Unsent;
    use base::Precedence;
    use p772::MessageType;

    #[test]
    fn sizes_and_rates_read_well() {
        assert_eq!(size(10_000_000), "10 MB");
        assert_eq!(size(1_500), "1.5 kB");
        assert_eq!(size(999), "999 B");
        assert!((kbit_s(1_000, Duration::from_secs(1)) - 8.0).abs() < 1e-9);
        assert_eq!(hex(&[0, 0xab]), "00ab");
        let exercise = MessageType { kind: 0, identifier: Some("STEADY".to_owned()) };
        assert_eq!(message_type(&exercise), "exercise=STEADY");
        assert_eq!(message_type(&MessageType { kind: 130, identifier: None }), "130");
    }

    #[test]
    fn a_cell_is_cut_where_it_is_long() {
        assert_eq!(in_cell("short"), "short");
        let whole = "x".repeat(CELL);
        assert_eq!(in_cell(&whole), whole);
        for long in ["x".repeat(CELL + 1), "x".repeat(70_000), "\u{1b}".repeat(CELL)] {
            let cut = in_cell(&long);
            assert!(cut.chars().count() == CELL && cut.ends_with('…'), "{cut}");
        }
    }

    /// What a sender may try: clears, titles, the clipboard, forged lines and turned words.
    const EVIL: &str = "\u{1b}[2J\u{9b}2J\u{1b}]52;c;cm0=\u{7}\r\nreport\u{0} \u{202e}exe\u{2066}";

    fn message() -> ReceivedMessage {
        let evil = || EVIL.to_owned();
        ReceivedMessage {
            mts_identifier: evil(),
            originator: evil(),
            this_recipient: evil(),
            intended_recipient: Some(evil()),
            to: vec![evil()],
            copy: vec![evil()],
            precedence: None,
            priority: "normal".to_owned(),
            content_type: "P772".to_owned(),
            content_identifier: Some(evil()),
            subject: Some(evil()),
            dtg: Some("260504030201Z".to_owned()),
            sics: vec![evil()],
            message_type: Some(evil()),
            instructions: vec![evil()],
            heading: vec![HeadingField { field: "subject", value: evil() }],
            label: Some(evil()),
            labels: vec![evil()],
            ipm: Some(evil()),
            notification: Some(NotificationLine {
                read: true,
                outcome: evil(),
                recipient: evil(),
                subject: Some(evil()),
                dtg: None,
            }),
            size: 5,
            content_length: 100,
            content_sha256: String::new(),
            submission_time: None,
            delivery_time: None,
            received_at: String::new(),
            receive_ms: 1.0,
            kbit_s: 1.0,
            duplicate: false,
            identifier_reused: true,
            text: Some(format!("line 1\r\nline 2 {EVIL}")),
            text_is_all: true,
            file: Some(evil()),
            extracted: vec![evil()],
            not_extracted: 1,
        }
    }

    fn report() -> ReceivedReport {
        let line = ReportLine {
            recipient: EVIL.to_owned(),
            because: Some("there is no such recipient".to_owned()),
            reason: Some("unable-to-transfer".to_owned()),
            diagnostic: Some("unrecognised-OR-name".to_owned()),
            supplementary: Some(EVIL.to_owned()),
            ..ReportLine::default()
        };
        ReceivedReport {
            mts_identifier: EVIL.to_owned(),
            content_identifier: Some(EVIL.to_owned()),
            subject: Some(EVIL.to_owned()),
            recipients: vec![line],
            ..ReceivedReport::default()
        }
    }

    #[test]
    fn nothing_that_others_wrote_is_obeyed_or_makes_a_line() {
        let lines = [Received::Message(Box::new(message())), Received::Report(report())];
        let table = received(&lines).to_string();
        assert_eq!(table.lines().count(), 3, "a header and two rows: {table}");
        let sent = Sent {
            mts_identifier: EVIL.to_owned(),
            content_identifier: EVIL.to_owned(),
            precedence: Precedence::Flash,
            size: 1,
            content_length: 1,
            content_sha256: String::new(),
            submission_time: None,
            submitted_at: String::new(),
            submit_ms: 1.0,
            kbit_s: 1.0,
            tries: 1,
        };
        let unsent = Unsent {
            content_identifier: EVIL.to_owned(),
            dtg: String::new(),
            precedence: Precedence::Flash,
            size: 1,
            tries: 1,
            reason: EVIL.to_owned(),
        };
        let outcome = SendOutcome { refused: vec![unsent], ..SendOutcome::default() };
        let unsent = super::unsent(&outcome);
        assert_eq!(unsent.len(), 2);
        for shown_text in
            [table, details(&lines), super::sent(&[sent]).to_string(), unsent.join("\n")]
        {
            let obeyed = |c: char| shown::is_obeyed(c) && c != '\n';
            assert!(!shown_text.contains(obeyed), "{shown_text:?}");
            assert!(
                shown_text.contains("\\u{1b}[2J") && shown_text.contains("\\u{202e}exe"),
                "{shown_text}"
            );
            let forged =
                |line: &str| line.strip_prefix("  ").unwrap_or(line).starts_with("report\\u");
            assert!(!shown_text.lines().any(forged), "{shown_text}");
        }
    }

    #[test]
    fn messages_and_reports_show_their_kind() {
        let address = |user: &str| format!("/S={user}/PRMD=ACT/ADMD=NATO/C=XX");
        let name = |user: &str| address(user).parse::<p1::ORName>().unwrap();
        let mut heading = p772::Heading {
            originator: Some(name("ALPHA").into()),
            primary_recipients: (0..22).map(|n| name(&format!("U{n}")).into()).collect(),
            copy_recipients: vec![name("BRAVO").into()],
            ..p772::Heading::default()
        };
        heading.military.authorised_at = base::Utc::from_utc_time(b"260504030201Z");
        heading.military.distribution_codes.sics = vec!["ABC".to_owned(), "DEF".to_owned()];
        let identifier = Some("STEADY".to_owned());
        heading.military.message_type = Some(MessageType { kind: 0, identifier });
        heading.military.message_instructions = vec!["BY HAND".to_owned(), "TWICE".to_owned()];
        let message = ReceivedMessage {
            mts_identifier: "[/C=XX/;A.1]".to_owned(),
            originator: address("ALPHA"),
            this_recipient: address("BRAVO"),
            intended_recipient: None,
            to: (0..22).map(|n| address(&format!("U{n}"))).collect(),
            copy: vec![address("BRAVO")],
            content_identifier: Some("CID-1".to_owned()),
            subject: Some("CONVOY".to_owned()),
            sics: vec!["ABC".to_owned(), "DEF".to_owned()],
            message_type: Some("exercise=STEADY".to_owned()),
            instructions: vec!["BY HAND".to_owned(), "TWICE".to_owned()],
            identifier_reused: false,
            text: Some("hello\nworld".to_owned()),
            file: Some("inbox/m.content".to_owned()),
            extracted: vec!["out/chart.bin".to_owned()],
            not_extracted: 0,
            heading: ua::heading::fields(&heading)
                .into_iter()
                .map(|f| HeadingField { field: f.label, value: f.value })
                .collect(),
            label: Some("/secret".to_owned()),
            labels: vec!["/secret".to_owned(), "/unmarked".to_owned()],
            notification: None,
            ..message()
        };
        let details = details(&[Received::Message(Box::new(message))]);
        for wanted in [
            "\n[/C=XX/;A.1]\n  from          /S=ALPHA/",
            "/S=U19/PRMD=ACT/ADMD=NATO/C=XX; and 2 more\n",
            "\n  copy          /S=BRAVO/",
            "\n  DTG           260504030201Z\n",
            "\n  SIC           ABC, DEF\n",
            "\n  type          exercise=STEADY\n",
            "\n  instruction   BY HAND\n  instruction   TWICE\n",
            "\n  label         /secret\n  label         /unmarked\n",
            "\n  extracted     out/chart.bin\n",
            "\n\n    hello\n    world\n",
        ] {
            assert!(details.contains(wanted), "{wanted:?} in {details}");
        }
        assert!(!details.contains("delivered to") && !details.contains("WARNING"), "{details}");
        let mut report = report();
        report.mts_identifier = "[/C=XX/;A.1]".to_owned();
        report.content_identifier = Some("CID-1".to_owned());
        report.subject = None;
        report.recipients[0].recipient = address("NOBODY");
        report.recipients[0].supplementary = Some("gone".to_owned());
        let table = received(&[Received::Report(report)]).to_string();
        for wanted in [
            "/S=NOBODY/PRMD=ACT/ADMD=NATO/C=XX",
            "not delivered: there is no such recipient (unable-to-transfer, unrecognised-OR-name); \
             the MTA adds \"gone\"; message [/C=XX/;A.1], content id CID-1",
        ] {
            assert!(table.contains(wanted), "{wanted:?} in {table}");
        }
    }
}
