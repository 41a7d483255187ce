//! The recipients of a burst: they take deliveries, compare them with the submissions, and confirm.

use super::run::Run;
use crate::inbox::{Inbox, Incoming};
use crate::profile::Profile;
use crate::receive::{refuse, take_report};
use crate::submission::Prepared;
use anyhow::{Context, Result, bail};
use base::ber::Writer;
use osi::api::Indication;
use p1::p3::{ArgumentEvent, DeliveryParser, DeliveryResult, MessageDeliveryEnvelope, operation};
use std::rc::Rc;
use std::time::Duration;
use ua::{Clock, Content, Lost, Services, User, describe};

/// Wait before a recipient binds again after it lost its association.
const PAUSE: Duration = Duration::from_secs(1);
/// Octets of one copy.
const CHUNK: usize = 64 << 10;

/// Takes deliveries until it is stopped, and binds again after a lost association.
pub(super) async fn receive(run: Rc<Run>, number: usize, profile: Rc<Profile>, first: User) {
    let access = run.access(&profile, &run.stop);
    let mut bound = Some(first);
    // Opened with the first message of another origin.
    let mut inbox = None;
    while !access.is_interrupted() {
        let user = match bound.take() {
            Some(user) => Ok(user),
            None => access.bind(Services::Delivery).await,
        };
        let ended = match user {
            Ok(mut user) => match deliveries(&run, number, &profile, &mut user, &mut inbox).await {
                Ok(()) => user.unbind().await,
                Err(error) => {
                    user.abort().await;
                    Err(error)
                }
            },
            Err(error) => Err(error),
        };
        if let Err(error) = ended
            && !access.is_interrupted()
        {
            run.print_line(&format!("{} receives again in 1 s: {error:#}", profile.name));
            let _ = tokio::time::timeout(PAUSE, access.interrupted.wait()).await;
        }
    }
}

async fn deliveries(
    run: &Run,
    number: usize,
    profile: &Profile,
    user: &mut User,
    inbox: &mut Option<Inbox>,
) -> Result<()> {
    loop {
        match user.next(None).await? {
            None => return Ok(()),
            Some(Indication::Invoked { invoke, operation }) => {
                let taken = match operation {
                    operation::MESSAGE_DELIVERY => {
                        take(run, number, profile, user, inbox, invoke).await
                    }
                    operation::REPORT_DELIVERY => {
                        take_report(user, open(profile, inbox)?, invoke).await.map(drop)
                    }
                    _ => bail!("the MTA invokes operation {operation}"),
                };
                if let Err(error) = taken {
                    refuse(user, invoke, &error).await?;
                    return Err(error);
                }
            }
            Some(Indication::Data { .. }) => {}
            other => bail!(Lost(describe(other.as_ref()))),
        }
    }
}

fn open<'a>(profile: &Profile, inbox: &'a mut Option<Inbox>) -> Result<&'a mut Inbox> {
    if inbox.is_none() {
        *inbox = Some(Inbox::open(&profile.inbox(), true)?);
    }
    inbox.as_mut().context("the inbox")
}

/// What happens to the content that is being delivered.
enum Taking {
    /// It has a content identifier of this run: it is compared, and not kept while it is the same.
    Ours { number: usize, message: Box<Prepared>, identifier: String, other: Option<Incoming> },
    /// It is kept, as `xuxa receive` does.
    Other { identifier: String, incoming: Incoming },
}

impl Taking {
    fn begin(
        run: &Run,
        envelope: &MessageDeliveryEnvelope,
        inbox: impl FnOnce(&str) -> Result<Incoming>,
    ) -> Result<Taking> {
        let identifier = envelope.identifier.to_string();
        let known = envelope.content_identifier.as_deref();
        Ok(match known.and_then(|identifier| run.number_of(identifier)) {
            Some(number) => {
                let message = Box::new(run.message(number)?);
                Taking::Ours { number, message, identifier, other: None }
            }
            None => {
                let incoming = inbox(&identifier)?;
                Taking::Other { identifier, incoming }
            }
        })
    }

    /// Takes octets of the content, at offset `before`. A sender can forge a content identifier: a
    /// content that differs from the submitted one is another message, and is kept.
    fn take(
        &mut self,
        before: u64,
        octets: &[u8],
        inbox: impl FnOnce(&str) -> Result<Incoming>,
    ) -> Result<()> {
        match self {
            Taking::Other { incoming, .. } | Taking::Ours { other: Some(incoming), .. } => {
                incoming.write(octets)
            }
            Taking::Ours { message, .. } if message.content.check(before, octets).is_ok() => Ok(()),
            Taking::Ours { message, identifier, other, .. } => {
                let mut incoming = inbox(identifier)?;
                copy(&message.content, before, &mut incoming)?;
                incoming.write(octets)?;
                *other = Some(incoming);
                Ok(())
            }
        }
    }

    /// All of it came, so many octets: one that ended early is kept, too.
    fn end(&mut self, length: u64, inbox: impl FnOnce(&str) -> Result<Incoming>) -> Result<()> {
        if let Taking::Ours { message, identifier, other: other @ None, .. } = self
            && length != message.content.len()
        {
            let mut incoming = inbox(identifier)?;
            copy(&message.content, length, &mut incoming)?;
            *other = Some(incoming);
        }
        Ok(())
    }
}

/// The beginning of a content, which was the same so far.
fn copy(content: &Content, length: u64, to: &mut Incoming) -> Result<()> {
    let mut done = 0;
    while done < length {
        let room = usize::try_from(length - done).unwrap_or(usize::MAX).min(CHUNK);
        let piece = content.read(done, room)?;
        if piece.is_empty() {
            break;
        }
        to.write(&piece)?;
        done += piece.len() as u64;
    }
    Ok(())
}

async fn take(
    run: &Run,
    user_number: usize,
    profile: &Profile,
    user: &mut User,
    inbox: &mut Option<Inbox>,
    invoke: i64,
) -> Result<()> {
    let mut parser = DeliveryParser::default();
    let (mut taking, mut length) = (None::<Taking>, 0);
    let mut begin = |identifier: &str| open(profile, inbox)?.begin(identifier);
    loop {
        let (bytes, last) = user.data().await?;
        let mut rest: &[u8] = &bytes;
        while let Some(event) = parser.next(&mut rest).context("in the message delivery")? {
            match (event, &mut taking) {
                (ArgumentEvent::Envelope(envelope), _) => {
                    taking = Some(Taking::begin(run, &envelope, &mut begin)?);
                }
                (ArgumentEvent::Content(octets), Some(taking)) => {
                    taking.take(length, octets, &mut begin)?;
                    length += octets.len() as u64;
                }
                (ArgumentEvent::Content(_) | ArgumentEvent::End, _) => {}
            }
        }
        if last {
            break;
        }
    }
    if !parser.is_done() {
        bail!("the MTA's message delivery was cut short");
    }
    let mut taking = taking.context("the MTA delivered a message without an envelope")?;
    taking.end(length, &mut begin)?;
    let (ours, kept) = match taking {
        Taking::Ours { number, other: None, .. } => (Some((number, true)), None),
        Taking::Ours { number, identifier, other: Some(incoming), .. } => {
            let why = "another content than this run's of that content identifier";
            (Some((number, false)), Some((identifier, incoming, why)))
        }
        Taking::Other { identifier, incoming } => {
            (None, Some((identifier, incoming, "none of this run")))
        }
    };
    if let Some((identifier, incoming, why)) = kept {
        open(profile, inbox)?.finish(incoming, &identifier, "content", |_| Ok(()))?;
        run.print_line(&format!("{} was delivered {identifier}, {why}: kept", profile.name));
    }
    let mut writer = Writer::new();
    DeliveryResult::default().write(&mut writer);
    user.answer(invoke, operation::MESSAGE_DELIVERY, writer.into_vec()).await?;
    if let Some((number, is_whole)) = ours {
        run.taken(number, user_number, Clock::utc().0, is_whole);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ua::Source;

    /// Takes this content, in pieces, where `ours` was submitted; what was kept of it.
    fn kept(ours: &[u8], content: &[u8]) -> Option<Vec<u8>> {
        let dir = tempfile::tempdir().unwrap();
        let mut inbox = Inbox::open(dir.path(), true).unwrap();
        let (head, body) = ours.split_at(2);
        let message = Prepared {
            content: Content {
                head: head.to_vec().into(),
                source: Source::Octets(body.to_vec().into()),
            },
            ..prepared()
        };
        let identifier = "[/C=XX/;1]".to_owned();
        let message = Box::new(message);
        let mut taking = Taking::Ours { number: 0, message, identifier, other: None };
        let mut length = 0;
        for piece in content.chunks(3) {
            taking.take(length, piece, |id| inbox.begin(id)).unwrap();
            length += piece.len() as u64;
        }
        taking.end(length, |id| inbox.begin(id)).unwrap();
        let Taking::Ours { identifier, other, .. } = taking else { panic!("it became another") };
        let kept = inbox.finish(other?, &identifier, "content", |_| Ok(())).unwrap();
        Some(std::fs::read(kept.file.unwrap()).unwrap())
    }

    fn prepared() -> Prepared {
        let address: p1::names::ORName = "/S=A/C=XX".parse().unwrap();
        let precedence = base::Precedence::Routine;
        let message = ua::Message::canned(address.clone(), vec![address], precedence, 10, "ID");
        Prepared::new(message).unwrap()
    }

    #[test]
    fn another_content_under_a_content_identifier_of_ours_is_kept() {
        assert_eq!(kept(b"submitted", b"submitted"), None);
        for other in [&b"somebody else's"[..], b"submitten", b"submit", b"", b"submitted and more"]
        {
            assert_eq!(kept(b"submitted", other).as_deref(), Some(other));
        }
    }
}
