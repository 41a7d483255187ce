//! A P3 association over one TCP connection, among many in one thread.

use crate::clock::Clock;
use anyhow::{Context, Result, bail};
use base::ber::{Element, Writer};
use bytes::{Bytes, BytesMut};
use osi::api::{Config, Indication, Input, Output, Request, Role, Selectors};
use osi::profiles::{self, abstract_syntax};
use osi::session::service::ConnectionReference;
use osi::stack::Association;
use p1::bind::{Credentials, Password, PasswordForm};
use p1::names::ORName;
use p1::p3::{MtsBind, MtsBindError, ObjectName};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::PathBuf;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout_at;

/// Octets read at once, and written at once at most before the rest is made.
const CHUNK: usize = 64 << 10;

/// Where a user binds and as whom.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Login {
    /// The MTA's P3 listener.
    pub mta: SocketAddr,
    /// The user's O/R address.
    pub address: String,
    /// File whose first line is the password.
    pub password_file: PathBuf,
}

/// A bound user.
pub(crate) struct User {
    stream: TcpStream,
    stack: Association,
    clock: Clock,
    indications: VecDeque<Indication>,
    unwritten: BytesMut,
    scratch: Box<[u8]>,
    over: bool,
    /// Our own name, as bound.
    pub(crate) name: ORName,
}

impl User {
    /// Connects, opens the association and binds, for deliveries too or for submission alone.
    ///
    /// # Errors
    /// No connection, a refusal, or an association that ended.
    pub(crate) async fn bind(login: &Login, deliveries: bool, clock: Clock) -> Result<User> {
        let file = &login.password_file;
        let text = std::fs::read_to_string(file)
            .with_context(|| format!("cannot read the password in {}", file.display()))?;
        let password = text.lines().next().unwrap_or_default().to_owned();
        let name: ORName = login.address.parse().context("a user's address")?;
        let stream = TcpStream::connect(login.mta)
            .await
            .with_context(|| format!("no connection to the MTA at {}", login.mta))?;
        stream.set_nodelay(true).context("TCP_NODELAY")?;
        let mut user = User {
            stream,
            stack: Association::new(config(deliveries), Role::Initiator),
            clock,
            indications: VecDeque::new(),
            unwritten: BytesMut::new(),
            scratch: vec![0; CHUNK].into(),
            over: false,
            name: name.clone(),
        };
        let password = Password::new(Bytes::from(password.into_bytes()), PasswordForm::Ia5);
        let bind = MtsBind::new(ObjectName::UserAgent(name), Credentials::Simple(password));
        let mut writer = Writer::new();
        bind.write(&mut writer);
        user.request(Request::Open { bind: writer.into_vec().into() });
        match user.next().await? {
            Indication::Opened { .. } => Ok(user),
            Indication::Refused { bind_error, detail, .. } => {
                let error = bind_error.as_deref().and_then(|e| Element::parse(e).ok());
                let error = error.and_then(|e| MtsBindError::read(&e).ok());
                bail!("{} is refused: {error:?}, {detail}", login.address)
            }
            other => bail!("the MTA's answer to a bind is out of place ({})", other.name()),
        }
    }

    /// Hands a request to the association; written by the next [`User::next`] or [`User::flush`].
    pub(crate) fn request(&mut self, request: Request) {
        self.stack.handle(self.clock.now(), Input::Request(request));
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(output) = self.stack.poll() {
            match output {
                Output::Send(octets) => self.unwritten.extend_from_slice(&octets),
                Output::Close => self.over = true,
                Output::Indication(indication) => self.indications.push_back(indication),
            }
        }
    }

    /// Writes what waits.
    ///
    /// # Errors
    /// The connection is gone.
    pub(crate) async fn flush(&mut self) -> Result<()> {
        if !self.unwritten.is_empty() {
            let octets = self.unwritten.split();
            self.stream.write_all(&octets).await.context("writing to the MTA")?;
        }
        Ok(())
    }

    /// The next indication; what waits is written first.
    ///
    /// # Errors
    /// The association ended.
    pub(crate) async fn next(&mut self) -> Result<Indication> {
        loop {
            if self.unwritten.len() >= CHUNK {
                self.flush().await?;
            }
            if let Some(indication) = self.indications.pop_front() {
                return match indication {
                    Indication::Aborted { detail, .. } => bail!("the association ended: {detail}"),
                    other => Ok(other),
                };
            }
            self.flush().await?;
            if self.over {
                bail!("the connection closed");
            }
            let read = self.stream.read(&mut self.scratch);
            let arrived = match self.stack.deadline() {
                None => Some(read.await),
                Some(at) => timeout_at(self.clock.at(at), read).await.ok(),
            };
            let now = self.clock.now();
            match arrived {
                None => self.stack.handle(now, Input::Tick),
                Some(Ok(read @ 1..)) => {
                    let octets = self.scratch.get(..read).unwrap_or_default();
                    self.stack.handle(now, Input::Bytes(octets));
                }
                Some(Ok(0) | Err(_)) => self.stack.handle(now, Input::Eof),
            }
            self.drain();
        }
    }

    /// Unbinds in order.
    ///
    /// # Errors
    /// The association ended otherwise.
    pub(crate) async fn unbind(mut self) -> Result<()> {
        self.request(Request::Release);
        loop {
            match self.next().await? {
                Indication::Released => return Ok(()),
                Indication::Data { .. } => {}
                other => bail!("the MTA's answer to an unbind is out of place ({})", other.name()),
            }
        }
    }
}

fn config(deliveries: bool) -> Config {
    let reference = ConnectionReference {
        user: Bytes::from_static(b"load"),
        common: Bytes::from(Clock::utc().to_utc_time()),
        additional: Bytes::new(),
    };
    let mut config = profiles::p3(Selectors::default(), Selectors::default(), reference);
    if !deliveries {
        config.contexts.retain(|c| c.abstract_syntax != abstract_syntax::mdse_88());
    }
    config
}
