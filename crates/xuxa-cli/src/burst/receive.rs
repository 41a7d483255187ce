//! The recipients of a burst, bound beside: they take what was submitted, compare it, and confirm.

use super::run::Run;
use crate::inbox::{Inbox, Incoming};
use crate::profile::Profile;
use crate::receive::{refuse, take_report};
use crate::submission::Prepared;
use anyhow::{Context, Result, bail};
use base::ber::Writer;
use osi::api::Indication;
use p1::p3::{ArgumentEvent, DeliveryParser, DeliveryResult, operation};
use std::rc::Rc;
use std::time::Duration;
use ua::{Clock, Lost, Services, User, describe};

/// Wait before a recipient whose association was lost binds again.
const PAUSE: Duration = Duration::from_secs(1);

/// Takes deliveries until told to stop, and binds again where the association is lost.
pub(super) async fn receive(run: Rc<Run>, number: usize, profile: Rc<Profile>, first: User) {
    let way = run.way(&profile, &run.stop);
    let mut bound = Some(first);
    // Opened with the first message that is none of ours.
    let mut inbox = None;
    while !way.is_interrupted() {
        let user = match bound.take() {
            Some(user) => Ok(user),
            None => way.bind(Services::Delivery).await,
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
            && !way.is_interrupted()
        {
            run.say(&format!("{} receives again in 1 s: {error:#}", profile.name));
            let _ = tokio::time::timeout(PAUSE, way.interrupted.wait()).await;
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

/// Where the content goes that is being delivered.
enum Taking {
    /// It is of this run: it is compared, and not kept.
    Ours { number: usize, message: Box<Prepared>, is_whole: bool },
    /// It is kept, as `xuxa receive` does.
    Other { identifier: String, incoming: Incoming },
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
    let (mut taking, mut length) = (None, 0);
    loop {
        let (bytes, last) = user.data().await?;
        let mut rest: &[u8] = &bytes;
        while let Some(event) = parser.next(&mut rest).context("in the message delivery")? {
            match (event, &mut taking) {
                (ArgumentEvent::Envelope(envelope), _) => {
                    let known = envelope.content_identifier.as_deref();
                    let known = known.and_then(|identifier| run.number_of(identifier));
                    taking = Some(match known {
                        Some(number) => {
                            let message = Box::new(run.message(number)?);
                            Taking::Ours { number, message, is_whole: true }
                        }
                        None => {
                            let identifier = envelope.identifier.to_string();
                            let incoming = open(profile, inbox)?.begin(&identifier)?;
                            Taking::Other { identifier, incoming }
                        }
                    });
                }
                (ArgumentEvent::Content(octets), Some(Taking::Ours { message, is_whole, .. })) => {
                    *is_whole = *is_whole && message.content.check(length, octets).is_ok();
                    length += octets.len() as u64;
                }
                (ArgumentEvent::Content(octets), Some(Taking::Other { incoming, .. })) => {
                    incoming.write(octets)?;
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
    let ours = match taking.context("the MTA delivered a message without an envelope")? {
        Taking::Ours { number, message, is_whole } => {
            Some((number, is_whole && length == message.content.len()))
        }
        Taking::Other { identifier, incoming } => {
            open(profile, inbox)?.finish(incoming, &identifier, "content")?;
            run.say(&format!(
                "{} was delivered {identifier}, none of this run: kept",
                profile.name
            ));
            None
        }
    };
    let mut writer = Writer::new();
    DeliveryResult::default().write(&mut writer);
    user.answer(invoke, operation::MESSAGE_DELIVERY, writer.into_vec()).await?;
    if let Some((number, is_whole)) = ours {
        run.taken(number, user_number, Clock::utc().0, is_whole);
    }
    Ok(())
}
