//! `xuxa reply`: to whom the message asks for replies, else to its originator.

use super::compose::{self, Draft};
use super::content::Reader;
use super::line::Line;
use super::with_store;
use crate::profile::Wrong;
use crate::submission::MtaAccess;
use anyhow::{Result, bail};
use base::Precedence;
use clap::Args;
use p1::SecurityLabel;
use p1::names::ORName;
use p772::{Charset, ContentBuilder, Heading, OrDescriptor, PartForm, RecipientSpecifier};
use ua::store::Fetched;
use ua::{Content, Source};

#[derive(Debug, Args)]
pub(crate) struct ReplyArgs {
    /// Its number in `xuxa list`
    number: u32,
    /// The text, or - for standard input
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    text: String,
    /// override, flash, immediate, priority, routine or deferred [default: that of the message]
    #[arg(long, short)]
    precedence: Option<Precedence>,
    /// Subject [default: Re: and that of the message]
    #[arg(long, short)]
    subject: Option<String>,
    /// Security label, as `xuxa send` has it [default: that of the profile]
    #[arg(long, value_name = "POLICY/CLASS")]
    label: Option<SecurityLabel>,
    /// To all other recipients of the message too, for information
    #[arg(long)]
    all: bool,
}

/// Runs `xuxa reply`.
pub(super) async fn reply(access: &MtaAccess<'_>, args: &ReplyArgs, json: bool) -> Result<u8> {
    let text = compose::text(&args.text)?;
    let me = access.profile.user()?;
    with_store(access, async |store| {
        let mut reader = Reader::default();
        let fetched = store.fetch(args.number, &mut reader, u64::MAX).await?;
        let Some(heading) = reader.heading.as_deref() else {
            bail!(Wrong(format!("entry {} is not a message that can be replied to", args.number)));
        };
        let (to, copy) = recipients(&fetched, heading, &me, args.all)?;
        compose::warn_of_label(access, &fetched, args.label.is_some());
        let line = Line::from(&fetched.entry);
        let given = args.subject.clone();
        let draft = Draft {
            to,
            copy,
            precedence: compose::precedence(args.precedence, &line),
            subject: given.or_else(|| compose::subject("Re: ", heading.subject.as_deref())),
            civil: heading.military.is_empty(),
            labels: args.label.iter().map(ua::label::field).collect(),
        };
        let prepared = draft.prepare(access)?;
        let mut new = prepared.heading();
        new.replied_to = Some(heading.this_ipm.clone());
        let charset = Charset::for_text(&text);
        let octets = charset.encode(&text);
        let builder = ContentBuilder::new(&new).map_err(|error| Wrong(error.to_string()))?;
        let framing = builder.finish_with(&PartForm::Text(charset), octets.len() as u64);
        let content = Content { head: framing.head.into(), source: Source::Octets(octets.into()) };
        prepared.submit(access, store, &content, json).await
    })
    .await?;
    Ok(0)
}

/// To whom: the reply recipients, else the heading's originator, else the envelope's; and for information all others
/// that the message was for, but not us.
fn recipients(
    fetched: &Fetched,
    heading: &Heading,
    me: &ORName,
    all: bool,
) -> Result<(Vec<ORName>, Vec<ORName>)> {
    let user = |of: &OrDescriptor| of.formal_name.clone();
    let mut to: Vec<ORName> = heading.reply_recipients.iter().filter_map(user).collect();
    if to.is_empty() {
        let originator = heading.originator.as_ref().and_then(user);
        to.extend(originator.or_else(|| fetched.entry.originator.clone()));
    }
    if to.is_empty() {
        bail!("the message has no originator that can be replied to");
    }
    let mut copy: Vec<ORName> = Vec::new();
    if all {
        let everyone = heading.primary_recipients.iter().chain(&heading.copy_recipients);
        for name in everyone.filter_map(|of: &RecipientSpecifier| user(&of.recipient)) {
            let is_known = to.iter().chain(&copy).any(|known| known.same_as(&name));
            if !is_known && !name.same_as(me) {
                copy.push(name);
            }
        }
    }
    Ok((to, copy))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(surname: &str) -> ORName {
        format!("/C=XX/ADMD=NATO/S={surname}").parse().unwrap()
    }

    #[test]
    fn a_reply_goes_where_it_is_asked_for_and_never_to_us() {
        let mut heading = Heading {
            originator: Some(name("A").into()),
            primary_recipients: vec![name("ME").into(), name("B").into()],
            copy_recipients: vec![name("a").into(), name("C").into()],
            ..Heading::default()
        };
        let mut fetched = Fetched::default();
        let of = |heading: &Heading, fetched: &Fetched, all| {
            recipients(fetched, heading, &name("ME"), all)
        };
        assert_eq!(of(&heading, &fetched, false).unwrap(), (vec![name("A")], vec![]));
        let all = (vec![name("A")], vec![name("B"), name("C")]);
        assert_eq!(of(&heading, &fetched, true).unwrap(), all);
        heading.reply_recipients = vec![name("D").into()];
        assert_eq!(of(&heading, &fetched, false).unwrap().0, [name("D")]);
        let nobody = Heading::default();
        assert!(of(&nobody, &fetched, false).is_err());
        fetched.entry.originator = Some(name("E"));
        assert_eq!(of(&nobody, &fetched, false).unwrap().0, [name("E")]);
    }
}
