//! A heading as people read it: labels and values, in a fixed order.

use crate::show;
use p772::{Heading, IpmIdentifier, OrDescriptor, RecipientSpecifier};

/// Most names in one field; the rest is counted.
const MAX_NAMED: usize = 20;

/// The fields that the heading has. Values are as they came: to be escaped for a terminal.
pub(super) fn fields(heading: &Heading) -> Vec<(&'static str, String)> {
    let military = &heading.military;
    let recipients = |all: &[RecipientSpecifier]| joined(all.iter().map(show::recipient));
    let users = |all: &[OrDescriptor]| joined(all.iter().map(user));
    let ipms = |all: &[IpmIdentifier]| joined(all.iter().map(|ipm| ipm.local.clone()));
    let time = |time: Option<base::Utc>| time.map(|time| time.to_string()).unwrap_or_default();
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let precedence = |of: Option<p772::MmhsPrecedence>| {
        let name = |p: p772::MmhsPrecedence| p.level().map(|level| level.to_string());
        of.map(|of| name(of).unwrap_or_else(|| of.value().to_string())).unwrap_or_default()
    };
    let mut fields = vec![
        ("subject", text(&heading.subject)),
        ("to", recipients(&heading.primary_recipients)),
        ("info", recipients(&heading.copy_recipients)),
        ("blind copy", recipients(&heading.blind_copy_recipients)),
        ("primary", precedence(military.primary_precedence)),
        ("copy", precedence(military.copy_precedence)),
        ("DTG", military.authorised_at.map(base::Utc::to_utc_time).unwrap_or_default()),
        ("SIC", military.distribution_codes.sics.join(", ")),
        ("type", military.message_type.as_ref().map(show::message_type).unwrap_or_default()),
        ("authorized by", users(&heading.authorizing_users)),
        ("IPM id", heading.this_ipm.local.clone()),
        (
            "in reply to",
            heading.replied_to.as_ref().map(|ipm| ipm.local.clone()).unwrap_or_default(),
        ),
        ("obsoletes", ipms(&heading.obsoleted)),
        ("related to", ipms(&heading.related)),
        ("reply to", users(&heading.reply_recipients)),
        ("reply by", time(heading.reply_time)),
        ("expires", time(heading.expiry_time)),
    ];
    let instructions = military.message_instructions.iter();
    fields.extend(instructions.map(|text| ("instruction", text.clone())));
    fields.retain(|(_, value)| !value.is_empty());
    fields
}

/// A user of a heading: the address, else the free-form name.
pub(super) fn user(of: &OrDescriptor) -> String {
    let address = of.formal_name.as_ref().map(|name| name.address.to_string());
    let address = address.filter(|address| !address.is_empty());
    address.or_else(|| of.free_form_name.clone()).unwrap_or_else(|| "?".to_owned())
}

fn joined(all: impl ExactSizeIterator<Item = String>) -> String {
    let more = all.len().saturating_sub(MAX_NAMED);
    let mut named: Vec<String> = all.take(MAX_NAMED).collect();
    if more > 0 {
        named.push(format!("and {more} more"));
    }
    named.join("; ")
}
