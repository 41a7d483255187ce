//! A user of a plan.

use anyhow::{Context, Result};
use bytes::Bytes;
use osi::api::Selectors;
use p1::bind::{Password, PasswordForm};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use ua::{Clock, Interrupted, Services, User};

/// How long an answer may take: longer than for a person, for the MTA may be at its limit.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(600);

/// The address of the MTA, and the name and password of a user.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Login {
    /// The MTA's P3 listener.
    pub mta: SocketAddr,
    /// The user's O/R address.
    pub address: String,
    /// File whose first line is the password.
    pub password_file: PathBuf,
}

impl Login {
    /// Binds.
    ///
    /// # Errors
    /// No password, no connection, a refusal, or an association that ended.
    pub(crate) async fn bind(&self, services: Services, clock: Clock) -> Result<User> {
        let file = &self.password_file;
        let text = std::fs::read_to_string(file)
            .with_context(|| format!("cannot read the password in {}", file.display()))?;
        let password = text.lines().next().unwrap_or_default().to_owned();
        let login = ua::Login {
            label: None,
            mta: self.mta.to_string(),
            user: self.address.parse().context("a user's address")?,
            password: Password::new(Bytes::from(password.into_bytes()), PasswordForm::Ia5),
            called: Selectors::default(),
            answer_timeout: ANSWER_TIMEOUT,
            edition: ua::Edition::default(),
        };
        let bound = User::bind(&login, services, None, clock, Interrupted::default()).await;
        bound.with_context(|| self.address.clone())
    }
}
