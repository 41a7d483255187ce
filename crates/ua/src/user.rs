//! A user bound to an MTA: a P3 association over one TCP connection.

use crate::clock::Clock;
use crate::connection::{Broken, Connection, INTERRUPTED, Target, describe, reference};
use crate::interrupt::Interrupted;
use crate::login::Login;
use anyhow::{Context, Result, bail};
use base::ber::{Element, Writer};
use bytes::Bytes;
use osi::api::{Config, Indication, Payload, Request, Selectors};
use osi::profiles;
use p1::SecurityLabel;
use p1::bind::Credentials;
use p1::names::ORName;
use p1::p3::{MtsBind, MtsBindError, ObjectName};
use std::path::Path;
use std::time::Duration;

/// The connection was lost or the MTA aborted: whether it accepted the message is unknown.
#[derive(Debug, thiserror::Error)]
#[error("the association ended: {0}")]
pub struct Lost(pub String);

/// The MTA refused the bind.
#[derive(Debug, thiserror::Error)]
#[error("the MTA refused the bind: {why}")]
pub struct Refused {
    /// The MTA's reason, or ours.
    pub why: String,
    /// The MTA rejects our credentials: a retry does not help.
    pub for_good: bool,
}

/// The services a user requests when binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Services {
    /// Submission only: the MTA delivers nothing on this association.
    Submission,
    /// Submission and delivery.
    Delivery,
}

/// A bound user.
pub struct User {
    connection: Connection,
    /// Our own name, as bound.
    pub name: ORName,
    /// The MTA's bind result.
    pub bound: MtsBind,
    /// The login's label.
    pub(crate) label: Option<SecurityLabel>,
}

/// As the users of P3 know it: [`Lost`] where the association is over.
fn lost(broken: Broken) -> anyhow::Error {
    match broken {
        Broken::Ended(why) => Lost(why).into(),
        Broken::Interrupted => Lost(INTERRUPTED.to_owned()).into(),
        other => other.into(),
    }
}

impl User {
    /// Connects, opens the association and binds. Setting `interrupted` ends every later wait of
    /// this user.
    ///
    /// # Errors
    /// No connection, [`Refused`], or [`Lost`].
    pub async fn bind(
        login: &Login,
        services: Services,
        pcap: Option<&Path>,
        clock: Clock,
        interrupted: Interrupted,
    ) -> Result<User> {
        let credentials = Credentials::Simple(login.password.clone());
        let bound = MtsBind::new(ObjectName::UserAgent(login.user.clone()), credentials);
        let mut writer = Writer::new();
        bound.write(&mut writer);
        let target = Target {
            login,
            protocol: "P3",
            config: config(login, services),
            bind: writer.into_vec().into(),
        };
        let connection = Connection::open(target, pcap, clock, interrupted).await.map_err(lost)?;
        let (name, label) = (login.user.clone(), login.label.clone());
        let mut user = User { connection, name, bound, label };
        user.await_bind().await?;
        Ok(user)
    }

    async fn await_bind(&mut self) -> Result<()> {
        match self.next(None).await? {
            Some(Indication::Opened { bind, .. }) => {
                let element = Element::parse(&bind).context("in the MTSBind result")?;
                self.bound = MtsBind::read(&element).context("in the MTSBind result")?;
                Ok(())
            }
            Some(Indication::Refused { bind_error, detail, .. }) => {
                let error = bind_error
                    .as_deref()
                    .and_then(|e| Element::parse(e).ok())
                    .and_then(|e| MtsBindError::read(&e).ok());
                let for_good = error == Some(MtsBindError::AuthenticationError);
                let why = match error {
                    _ if for_good => "authentication error: is the user known there, and the \
                                      password right?"
                        .to_owned(),
                    Some(MtsBindError::Busy) => {
                        "busy: it has no place for another association, cannot \
                                                 serve this user now (bound at another node of the \
                                                 site, or its database is away), or \
                                                 too many binds in this name failed lately (each \
                                                 half minute one more is looked at; `mta reload` \
                                                 there ends it). Its log names which"
                            .to_owned()
                    }
                    Some(error) => error.to_string(),
                    None => detail,
                };
                bail!(Refused { why, for_good })
            }
            other => bail!(Lost(self.connection.why_not_opened(other.as_ref()))),
        }
    }

    /// Passes a request to the association; the next [`User::next`] or [`User::flush`] sends its
    /// output.
    pub fn request(&mut self, request: Request) {
        self.connection.request(request);
    }

    /// Octets sent so far.
    pub fn written(&self) -> u64 {
        self.connection.written()
    }

    /// The value of [`User::written`] once all requested output is sent.
    pub fn requested(&self) -> u64 {
        self.connection.requested()
    }

    /// Whether the connection accepts no more output.
    pub fn is_over(&self) -> bool {
        self.connection.is_over()
    }

    /// Whether the user was interrupted.
    pub fn is_interrupted(&self) -> bool {
        self.connection.is_interrupted()
    }

    /// The next indication, after pending output is written; `None` if none arrived within `wait`,
    /// or after an interrupt.
    ///
    /// # Errors
    /// [`Lost`], or the capture cannot be written.
    pub async fn next(&mut self, wait: Option<Duration>) -> Result<Option<Indication>> {
        self.connection.next(wait).await.map_err(lost)
    }

    /// The next piece of an argument or result, and whether it is the last.
    ///
    /// # Errors
    /// [`Lost`]: another indication arrived.
    pub async fn data(&mut self) -> Result<(Bytes, bool)> {
        match self.next(None).await? {
            Some(Indication::Data { bytes, last }) => Ok((bytes, last)),
            other => bail!(Lost(describe(other.as_ref()))),
        }
    }

    /// Answers an invocation with a result, and sends it.
    ///
    /// # Errors
    /// The capture cannot be written.
    pub async fn answer(&mut self, invoke: i64, operation: i64, result: Vec<u8>) -> Result<()> {
        self.request(Request::Result { invoke, operation, result: Payload::whole(result) });
        self.flush().await
    }

    /// Writes pending output, unless the MTA accepts nothing for too long, or for a moment after
    /// an interrupt.
    ///
    /// # Errors
    ///
    /// The capture cannot be written. The next [`User::next`] returns the end of the connection,
    /// as the MTA may have sent something before it.
    pub async fn flush(&mut self) -> Result<()> {
        self.connection.flush().await.map_err(lost)
    }

    /// Aborts the association, so that the MTA knows the end is intended.
    pub async fn abort(self) {
        self.connection.abort().await;
    }

    /// Unbinds in order; the wait for an MTA that does not answer is short.
    ///
    /// # Errors
    /// [`Lost`], or the capture cannot be written.
    pub async fn unbind(self) -> Result<()> {
        self.connection.unbind().await.map_err(lost)
    }
}

fn config(login: &Login, services: Services) -> Config {
    let mut config = profiles::p3(Selectors::default(), login.called.clone(), reference());
    config.operation_timeout = login.answer_timeout;
    if services == Services::Submission {
        let delivery = profiles::abstract_syntax::mdse_88();
        config.contexts.retain(|c| c.abstract_syntax != delivery);
    }
    config
}
