//! Submits a message until the MTA has answered; repeats it after a lost answer.

use crate::profile::{Profile, Wrong};
use crate::terminal;
use anyhow::Result;
use base::{Precedence, Utc};
use p1::p3::{MessageSubmissionEnvelope, SubmissionResult};
use std::path::Path;
use std::time::Duration;
use ua::sent::Submitted;
use ua::{Clock, Content, Interrupted, Lost, Message, NotAccepted, Refused, Services, User};

/// Waits between two attempts: the first one, doubled up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(2);

/// Access to the MTA as one user.
#[derive(Clone, Debug)]
pub(crate) struct MtaAccess<'a> {
    pub profile: &'a Profile,
    pub pcap: Option<&'a Path>,
    pub clock: Clock,
    pub interrupted: Interrupted,
    pub progress: bool,
    /// How long to wait for the answer after all of a submission was sent.
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

/// A message with its encoded content.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub precedence: Precedence,
    pub content_identifier: String,
    /// Date-time group of its heading.
    pub dtg: Utc,
    pub envelope: MessageSubmissionEnvelope,
    pub content: Content,
    /// What the record of what was sent keeps.
    pub record: Submitted,
    pub size: u64,
}

impl Prepared {
    pub(crate) fn new(message: Message) -> Result<Prepared> {
        Ok(Prepared {
            precedence: message.precedence,
            content_identifier: message.content_identifier.clone(),
            dtg: message.authorised_at,
            envelope: message.envelope(),
            record: Submitted::new(&message),
            size: message.size(),
            content: message.content()?,
        })
    }

    /// Octets of the body.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }
}

/// The acceptance of a message.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub result: SubmissionResult,
    /// Our time of the first octet of the answered submission.
    pub begun: Utc,
    /// From then to the answer.
    pub elapsed: Duration,
    /// Number of submissions.
    pub tries: u32,
}

/// Why a message was not accepted.
#[derive(Debug)]
pub(crate) struct Failure {
    pub disposition: Disposition,
    pub tries: u32,
    pub reason: String,
    pub is_wrong_use: bool,
    /// The bind failed, or all attempts were without an answer: the next message would wait as
    /// long.
    pub is_away: bool,
}

impl Failure {
    /// The failure of a message that was not tried.
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

/// Observes the octets sent.
pub(crate) trait Watch {
    /// An attempt begins.
    fn begin(&mut self);
    /// The next piece of the content.
    fn piece(&mut self, octets: &[u8]);
}

/// Submits a message, and repeats it if no answer comes: with the same content identifier and octets
/// the MTA recognises the repetition. `user` is an existing association, which stays open.
pub(crate) async fn submit(
    access: &MtaAccess<'_>,
    user: &mut Option<User>,
    message: &Prepared,
    retry_for: Duration,
    watch: &mut impl Watch,
) -> Result<Accepted, Failure> {
    let (mut tries, mut pause) = (0, Duration::ZERO);
    // Set after a lost answer: when to give up, and whether all of the message was sent.
    let (mut until, mut doubt) = (None, false);
    loop {
        let bound = match user.take() {
            Some(bound) => Ok(bound),
            None => access.bind(Services::Submission).await,
        };
        let is_bound = bound.is_ok();
        let (error, again) = match bound {
            // There is no wait for an MTA that did not accept the first bind.
            Err(error) => {
                let again = tries > 0 && !is_for_good(&error);
                (error, again)
            }
            Ok(mut bound) => {
                tries += 1;
                watch.begin();
                let (start, begun) = (access.clock.now(), Clock::utc());
                let each = |octets: &[u8]| watch.piece(octets);
                let invoke = 1 + i64::from(tries);
                let (envelope, content) = (&message.envelope, &message.content);
                let attempt = ua::submit(&mut bound, invoke, envelope, content, each).await;
                match attempt.outcome {
                    Ok(result) => {
                        *user = Some(bound);
                        let elapsed = access.clock.now().since(start);
                        return Ok(Accepted { result, begun, elapsed, tries });
                    }
                    Err(error) => {
                        let answered = error.is::<NotAccepted>();
                        doubt |= attempt.complete && !answered;
                        // After an early answer the rest of the submission would still have to be sent.
                        let again = error.is::<Lost>();
                        if answered && attempt.complete {
                            *user = Some(bound);
                        } else if access.is_interrupted() || !again {
                            bound.abort().await;
                        }
                        (error, again)
                    }
                }
            }
        };
        let now = access.clock.now();
        let until = *until.get_or_insert(now + retry_for);
        if !again || access.is_interrupted() || now + pause >= until {
            let disposition = match () {
                () if doubt => Disposition::InDoubt,
                () if error.is::<NotAccepted>() => Disposition::Refused,
                () => Disposition::NotSent,
            };
            let is_wrong_use = error.is::<Wrong>();
            // Without a repetition, the next message may reach the MTA again.
            let is_away = !is_bound || (again && tries > 1);
            let reason = match error.downcast_ref::<NotAccepted>() {
                // Whoever shows it shows the disposition before it.
                Some(NotAccepted(why)) if disposition == Disposition::Refused => why.clone(),
                _ => format!("{error:#}"),
            };
            return Err(Failure { disposition, tries, reason, is_wrong_use, is_away });
        }
        if pause.is_zero() {
            let id = &message.content_identifier;
            terminal::report_error(&format!("{error:#}; submitting {id} again"));
        }
        // An unreachable MTA gives no event to wait for.
        let _ = tokio::time::timeout(pause, access.interrupted.wait()).await;
        pause = (pause * 2).clamp(FIRST_PAUSE, MAX_PAUSE);
    }
}

/// Whether another attempt to bind cannot succeed.
fn is_for_good(error: &anyhow::Error) -> bool {
    error.is::<Wrong>() || error.downcast_ref::<Refused>().is_some_and(|refused| refused.for_good)
}
