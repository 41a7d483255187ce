//! `xuxa password`: changes the password of the profile's user at the store.

use super::with_store;
use crate::profile::{self, Wrong};
use crate::submission::MtaAccess;
use crate::terminal;
use anyhow::{Context as _, Result, bail};
use clap::Args;
use p1::bind::{Password, PasswordForm};
use std::io::IsTerminal as _;
use std::path::PathBuf;

/// Longest password (ub-password-length, X.411).
const MAX_PASSWORD: usize = 62;

#[derive(Debug, Args)]
pub(crate) struct PasswordArgs {
    /// Read the new password from the first line of this file, mode 0600 [default: asked for on the terminal]
    #[arg(long, value_name = "FILE")]
    new_file: Option<PathBuf>,
}

/// Runs `xuxa password`.
pub(super) async fn password(
    access: &MtaAccess<'_>,
    args: &PasswordArgs,
    json: bool,
) -> Result<u8> {
    let old = access.profile.store_login()?.password;
    let new = match &args.new_file {
        Some(path) => profile::from_file(path)?,
        None => asked()?,
    };
    check(&new, old.octets())?;
    let password = Password::new(new.clone().into_bytes(), PasswordForm::Ia5);
    with_store(access, async |store| Ok(store.change_password(&old, &password).await?)).await?;
    // From here on the old one is of no use.
    let file = access.profile.password.file();
    let kept = match file {
        Some(path) if Some(path) != args.new_file.as_deref() => profile::rewrite(path, &new)
            .with_context(|| format!("the password is changed, but not in {}", path.display()))
            .map(|()| true)?,
        Some(_) => true,
        None => false,
    };
    if json {
        terminal::print_json(&serde_json::json!({ "changed": true, "password_file": kept }));
    } else if kept {
        terminal::print("the password is changed, in the profile's password file too");
    } else {
        terminal::print("the password is changed: set the profile's environment variable to it");
    }
    Ok(0)
}

/// Asks twice on the terminal, without echo.
fn asked() -> Result<String> {
    if !std::io::stdin().is_terminal() {
        bail!(Wrong(
            "the new password is asked for on a terminal: else give --new-file".to_owned()
        ));
    }
    let new = rpassword::prompt_password("new password: ").context("cannot read the terminal")?;
    let again = rpassword::prompt_password("once more: ").context("cannot read the terminal")?;
    if new != again {
        bail!(Wrong("the two are not the same: nothing is changed".to_owned()));
    }
    Ok(new)
}

fn check(new: &str, old: &[u8]) -> Result<()> {
    let wrong = match new {
        "" => "the new password is empty",
        _ if new.len() > MAX_PASSWORD => "the new password is longer than 62 characters",
        _ if !new.is_ascii() || new.chars().any(char::is_control) => {
            "the new password has characters that IA5 does not have, or control characters"
        }
        _ if new.as_bytes() == old => "the new password is the old one",
        _ => return Ok(()),
    };
    bail!(Wrong(wrong.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_password_is_one_that_can_be_sent() {
        assert!(check("etna", b"vesuvio").is_ok());
        for bad in ["", "vesuvio", "pässword", "a\tb", &"x".repeat(63)] {
            assert!(check(bad, b"vesuvio").is_err(), "{bad}");
        }
    }
}
