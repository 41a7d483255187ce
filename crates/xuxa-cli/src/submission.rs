//! A message submitted until the MTA has answered: again where an answer was lost.

use crate::profile::{Profile, Wrong};
use crate::terminal;
use anyhow::Result;
use base::{Precedence, Utc};
use p1::p3::{MessageSubmissionEnvelope, SubmissionResult};
use std::path::Path;
use std::time::Duration;
use ua::{Clock, Content, Interrupted, Lost, Message, NotAccepted, Refused, Services, User};

/// Waits between two attempts to submit again: the first, doubled up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// How to reach the MTA.
#[derive(Clone, Debug)]
pub(crate) struct MtaAccess<'a> {
    pub profile: &'a Profile,
    pub pcap: Option<&'a Path>,
    pub clock: Clock,
    pub interrupted: Interrupted,
    pub progress: bool,
    /// How long the answer to a submission may take once all of it went out.
    pub answer_timeout: Duration,
}

impl MtaAccess<'_> {
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted.is_set()
    }

    pub(crate) async fn bind(&self, services: Services) -> Result<User> {
        let mut login = self.profile.login()?;
        if services == Services::Submission {
            login.answer_timeout = self.answer_timeout;
        }
        User::bind(&login, services, self.pcap, self.clock, self.interrupted.clone()).await
    }
}

/// A message with the octets it is submitted as.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub precedence: Precedence,
    pub content_identifier: String,
    /// Date-time group of its heading.
    pub dtg: Utc,
    pub envelope: MessageSubmissionEnvelope,
    pub content: Content,
}

impl Prepared {
    pub(crate) fn new(message: Message) -> Result<Prepared> {
        Ok(Prepared {
            precedence: message.precedence,
            content_identifier: message.content_identifier.clone(),
            dtg: message.authorised_at,
            envelope: message.envelope(),
            content: message.content()?,
        })
    }

    /// Octets of the body.
    pub(crate) fn size(&self) -> u64 {
        self.content.source.len()
    }
}

/// An answer that accepts a message.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub result: SubmissionResult,
    /// Our time when the first octet of the submission that was answered went out.
    pub begun: Utc,
    /// From then to the answer.
    pub elapsed: Duration,
    /// How often it was submitted.
    pub tries: u32,
}

/// Why a message has no answer that accepts it.
#[derive(Debug)]
pub(crate) struct Failure {
    pub disposition: Disposition,
    pub tries: u32,
    pub reason: String,
    pub is_wrong_use: bool,
    /// The MTA could not be bound to, or gave no answer however often it was asked: the next
    /// message would only wait as long.
    pub is_away: bool,
}

impl Failure {
    /// Of a message that was not tried.
    pub(crate) fn not_tried(why: &str) -> Failure {
        Failure {
            disposition: Disposition::NotSent,
            tries: 0,
            reason: format!("not tried: {why}"),
            is_wrong_use: false,
            is_away: false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disposition {
    InDoubt,
    Refused,
    NotSent,
}

/// Sees what goes out.
pub(crate) trait Watch {
    /// The first octet is about to go, of this try or another.
    fn begin(&mut self);
    /// The next piece of the content.
    fn piece(&mut self, octets: &[u8]);
}

/// Submits a message, and where no answer comes, again: the same content identifier and the same
/// octets make the repetition harmless. `user` is who is bound already, and stays bound.
pub(crate) async fn submit(
    way: &MtaAccess<'_>,
    user: &mut Option<User>,
    message: &Prepared,
    retry_for: Duration,
    watch: &mut impl Watch,
) -> Result<Accepted, Failure> {
    let (mut tries, mut pause) = (0, Duration::ZERO);
    // Set once an answer was lost: when to give up, and whether the MTA had all of the message.
    let (mut until, mut doubt) = (None, false);
    loop {
        let bound = match user.take() {
            Some(bound) => Ok(bound),
            None => way.bind(Services::Submission).await,
        };
        let is_bound = bound.is_ok();
        let (error, again) = match bound {
            // An MTA that was not there to begin with is not waited for.
            Err(error) => {
                let again = tries > 0 && !is_for_good(&error);
                (error, again)
            }
            Ok(mut bound) => {
                tries += 1;
                watch.begin();
                let (start, begun) = (way.clock.now(), Clock::utc());
                let each = |octets: &[u8]| watch.piece(octets);
                let invoke = 1 + i64::from(tries);
                let (envelope, content) = (&message.envelope, &message.content);
                let attempt = ua::submit(&mut bound, invoke, envelope, content, each).await;
                match attempt.outcome {
                    Ok(result) => {
                        *user = Some(bound);
                        let elapsed = way.clock.now().since(start);
                        return Ok(Accepted { result, begun, elapsed, tries });
                    }
                    Err(error) => {
                        let answered = error.is::<NotAccepted>();
                        doubt |= attempt.complete && !answered;
                        // Answered in the middle of it, the rest of it would still have to go.
                        let again = error.is::<Lost>();
                        if answered && attempt.complete {
                            *user = Some(bound);
                        } else if way.is_interrupted() || !again {
                            bound.abort().await;
                        }
                        (error, again)
                    }
                }
            }
        };
        let now = way.clock.now();
        let until = *until.get_or_insert(now + retry_for);
        if !again || way.is_interrupted() || now + pause >= until {
            let disposition = match () {
                () if doubt => Disposition::InDoubt,
                () if error.is::<NotAccepted>() => Disposition::Refused,
                () => Disposition::NotSent,
            };
            let is_wrong_use = error.is::<Wrong>();
            // Without a repetition the next one may find an MTA that is back.
            let is_away = !is_bound || (again && tries > 1);
            let reason = format!("{error:#}");
            return Err(Failure { disposition, tries, reason, is_wrong_use, is_away });
        }
        if pause.is_zero() {
            let id = &message.content_identifier;
            terminal::report_error(&format!("{error:#}; submitting {id} again"));
        }
        // An MTA that is away gives no event to wait for.
        let _ = tokio::time::timeout(pause, way.interrupted.wait()).await;
        pause = (pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
    }
}

/// Whether trying to bind again does not help.
fn is_for_good(error: &anyhow::Error) -> bool {
    error.is::<Wrong>() || error.downcast_ref::<Refused>().is_some_and(|refused| refused.for_good)
}
