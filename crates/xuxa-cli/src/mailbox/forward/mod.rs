//! `xuxa forward`: the message as it came, with the envelope of its delivery, as a body part of a new one.

mod auto;

pub(super) use auto::{AutoForwardArgs, auto_forward};

use super::compose::{self, Draft};
use super::line::Line;
use super::with_store;
use crate::part::{Part, sweep};
use crate::profile::Wrong;
use crate::send::Names;
use crate::submission::MtaAccess;
use anyhow::{Context as _, Result, bail};
use base::Precedence;
use base::ber::Length;
use clap::Args;
use p1::extension::number::MESSAGE_SECURITY_LABEL;
use p1::extension::{ExtensionField, ExtensionType};
use p1::names::ORName;
use p1::p3::MessageDeliveryEnvelope;
use p772::{ContentBuilder, Forwarded, Heading, content_header};
use std::io::{self, Write};
use ua::store::{Fetched, Kind, Store};
use ua::{Content, Source};

/// Prefix of contents that are being forwarded.
const PREFIX: &str = ".xuxa-forward";
/// Octets that hold a header at least (X.690 8.1).
const MAX_HEADER: usize = 16;

#[derive(Debug, Args)]
pub(crate) struct ForwardArgs {
    /// Its number in `xuxa list`
    number: u32,
    /// Recipient for action: an O/R address such as /C=XX/ADMD=NATO/PRMD=ACT/S=OPS, or a name of the address book
    #[arg(long, required = true, value_name = "ADDRESS")]
    to: Vec<String>,
    /// Recipient for information
    #[arg(long, value_name = "ADDRESS")]
    copy: Vec<String>,
    /// A text before it, or - for standard input
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    text: Option<String>,
    /// override, flash, immediate, priority, routine or deferred [default: that of the message]
    #[arg(long, short)]
    precedence: Option<Precedence>,
    /// Subject [default: Fwd: and that of the message]
    #[arg(long, short)]
    subject: Option<String>,
}

/// Runs `xuxa forward`.
pub(super) async fn forward(access: &MtaAccess<'_>, args: &ForwardArgs, json: bool) -> Result<u8> {
    let text = args.text.as_deref().map(compose::text).transpose()?;
    let names = Names::load(access.profile)?;
    let all = |texts: &[String]| -> Result<Vec<ORName>> {
        let found: Vec<Vec<ORName>> =
            texts.iter().map(|text| names.all(text)).collect::<Result<_>>()?;
        Ok(found.into_iter().flatten().collect())
    };
    let (to, copy) = (all(&args.to)?, all(&args.copy)?);
    let mut inner = Inner::create()?;
    with_store(access, async |store| {
        let fetched = fetch(store, args.number, &mut inner).await?;
        let line = Line::from(&fetched.entry);
        let given = args.subject.clone();
        let civil = line.content_type.as_deref() != Some("P772");
        let draft = Draft {
            to: to.clone(),
            copy: copy.clone(),
            precedence: compose::precedence(args.precedence, &line),
            subject: given.or_else(|| compose::subject("Fwd: ", line.subject.as_deref())),
            civil,
            labels: fetched.envelope.as_deref().map(labels).unwrap_or_default(),
        };
        let prepared = draft.prepare(access)?;
        let source = inner.source()?;
        let delivery = fetched.envelope_octets.as_ref().map(|octets| octets.to_vec());
        let forwarded = Forwarded { military: !civil, delivery };
        let head = head(&prepared.heading(), text.as_deref(), &forwarded, source.len())?;
        let content = Content { head: head.into(), source };
        prepared.submit(access, store, &content, json).await
    })
    .await?;
    Ok(0)
}

/// Each message-security-label of an envelope.
pub(crate) fn labels(envelope: &MessageDeliveryEnvelope) -> Vec<ExtensionField> {
    let is_label = ExtensionType::Standard(MESSAGE_SECURITY_LABEL);
    envelope.extensions.0.iter().filter(|field| field.kind == is_label).cloned().collect()
}

fn head(
    heading: &Heading,
    text: Option<&str>,
    forwarded: &Forwarded,
    length: u64,
) -> Result<Vec<u8>> {
    let mut builder = ContentBuilder::new(heading).map_err(|error| Wrong(error.to_string()))?;
    if let Some(text) = text {
        builder = builder.text(text);
    }
    Ok(builder.finish_forwarding(forwarded, length).head)
}

async fn fetch(store: &mut Store, number: u32, inner: &mut Inner) -> Result<Fetched> {
    let fetched = store.fetch(number, inner, u64::MAX).await?;
    if fetched.entry.kind == Kind::Report {
        bail!(Wrong(format!("entry {number} is a report, which cannot be forwarded as a message")));
    }
    Ok(fetched)
}

/// The contents of the outermost element of a content, in a file.
pub(crate) struct Inner {
    part: Part,
    state: State,
}

enum State {
    /// Before the header is whole.
    Front(Vec<u8>),
    /// After it; whether the last two octets are end-of-contents, and octets written.
    Open { indefinite: bool, written: u64 },
}

impl Inner {
    /// Begins, in the directory for temporary files.
    pub(crate) fn create() -> Result<Inner> {
        let dir = std::env::temp_dir();
        let cannot = || format!("cannot write into {}", dir.display());
        sweep(&dir, PREFIX).with_context(cannot)?;
        let part = Part::create(&dir, PREFIX).with_context(cannot)?;
        Ok(Inner { part, state: State::Front(Vec::new()) })
    }

    /// What is forwarded.
    pub(crate) fn source(&self) -> Result<Source> {
        let State::Open { indefinite, written } = self.state else {
            bail!("the message has no content that can be forwarded");
        };
        let length = if indefinite { written.saturating_sub(2) } else { written };
        let file =
            std::fs::File::open(self.part.path()).context("cannot read the content again")?;
        Ok(Source::File(file, length))
    }
}

impl Write for Inner {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        match &mut self.state {
            State::Front(front) => {
                front.extend_from_slice(octets);
                let header =
                    content_header(front.get(..front.len().min(MAX_HEADER)).unwrap_or_default());
                let header = header.map_err(|error| {
                    io::Error::other(format!("it cannot be forwarded as a message: {error}"))
                })?;
                if let Some(header) = header {
                    let rest = front.split_off(header.size);
                    self.part.write(&rest)?;
                    let indefinite = header.length == Length::Indefinite;
                    self.state = State::Open { indefinite, written: rest.len() as u64 };
                }
            }
            State::Open { written, .. } => {
                self.part.write(octets)?;
                *written += octets.len() as u64;
            }
        }
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outer_header_is_taken_off_wherever_the_content_is_cut() {
        let dir = tempfile::tempdir().unwrap();
        for (content, expected) in [
            (vec![0xa0, 3, 1, 2, 3], &[1, 2, 3][..]),
            (vec![0xa0, 0x81, 3, 1, 2, 3], &[1, 2, 3]),
            (vec![0xa0, 0x80, 1, 2, 3, 0, 0], &[1, 2, 3]),
        ] {
            for slice in [1, 2, 100] {
                let part = Part::create(dir.path(), PREFIX).unwrap();
                let mut inner = Inner { part, state: State::Front(Vec::new()) };
                content.chunks(slice).for_each(|piece| inner.write_all(piece).unwrap());
                let source = inner.source().unwrap();
                assert_eq!((source.read(0, 99).unwrap().as_ref(), source.len()), (expected, 3));
            }
        }
        let part = Part::create(dir.path(), PREFIX).unwrap();
        let mut inner = Inner { part, state: State::Front(Vec::new()) };
        assert!(inner.source().is_err());
        assert!(inner.write_all(b"no content").is_err());
    }
}
