//! Profiles: a user and an MTA to bind to, from a configuration file.

use crate::part::{Part, sync_dir};
use anyhow::{Context, Result, bail};
use bytes::Bytes;
use osi::api::Selectors;
use p1::SecurityLabel;
use p1::bind::{Password, PasswordForm};
use p1::names::ORName;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The file: named profiles.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Profiles {
    /// The profile used when none is named.
    default: Option<String>,
    #[serde(default)]
    profile: BTreeMap<String, Profile>,
}

/// The edition of P7.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(crate) enum StoreEdition {
    #[default]
    #[serde(rename = "1988")]
    Of1988,
    #[serde(rename = "1994")]
    Of1994,
}

/// One user at one MTA.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Profile {
    /// Host and port of the MTA's P3 listener.
    pub mta: String,
    /// Host and port of the P7 listener of its message store.
    #[serde(default)]
    pub store: Option<String>,
    /// Edition of P7 that its message store speaks.
    #[serde(default)]
    pub edition: StoreEdition,
    /// O/R address to bind with, as in `/C=XX/ADMD=NATO/PRMD=NAPLES/S=OPS`.
    pub user: String,
    /// The source of the password.
    pub password: PasswordSource,
    /// Transport selector to call, as text.
    #[serde(default)]
    pub tsel: Option<String>,
    /// Session selector to call, as text.
    #[serde(default)]
    pub ssel: Option<String>,
    /// Presentation selector to call, as text.
    #[serde(default)]
    pub psel: Option<String>,
    /// Security label of what is submitted without one, as in `1.3.26.0.4406.0.5.1/restricted`.
    #[serde(default)]
    pub label: Option<String>,
    /// Where received messages are kept, and which were received.
    #[serde(default)]
    pub inbox: Option<PathBuf>,
    /// The profile's own name.
    #[serde(skip)]
    pub name: String,
    /// The folder of the file of profiles.
    #[serde(skip)]
    pub home: PathBuf,
    /// The addresses of all profiles of the file.
    #[serde(skip)]
    pub known: Vec<String>,
    /// How long an answer may take, if another time than the default is wished.
    #[serde(skip)]
    pub answer_timeout: Option<Duration>,
}

/// A password is never in the configuration file itself.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PasswordSource {
    /// Name of an environment variable.
    env: Option<String>,
    /// A file whose first line it is.
    file: Option<PathBuf>,
}

/// The profile or what it refers to is wrong: the exit code is 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Wrong(pub String);

impl PasswordSource {
    /// Reads the password.
    ///
    /// # Errors
    /// [`Wrong`].
    pub(crate) fn read(&self) -> Result<String> {
        let password = match (&self.env, &self.file) {
            (Some(name), None) => std::env::var(name).with_context(|| {
                Wrong(format!("the password is expected in the environment variable {name}"))
            })?,
            (None, Some(path)) => from_file(path)?,
            _ => bail!(Wrong(
                "give the password as { env = \"NAME\" } or { file = \"PATH\" }".to_owned()
            )),
        };
        if password.is_empty() {
            bail!(Wrong("the profile's password is empty".to_owned()));
        }
        Ok(password)
    }
}

impl PasswordSource {
    /// The file that has it, if it is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }
}

/// Replaces a password file, durably: the first line is the new password, and there is no other.
///
/// # Errors
/// It cannot be written; the old one is still there then.
#[expect(clippy::disallowed_methods, reason = "the directory is synced after it")]
pub(crate) fn rewrite(path: &Path, password: &str) -> Result<()> {
    let dir = path.parent().filter(|dir| *dir != Path::new("")).unwrap_or(Path::new("."));
    // A link stays a link, and the file that it names is replaced.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let dir = path.parent().unwrap_or(dir);
    let mut part = Part::create(dir, ".xuxa-password")?;
    part.write(format!("{password}\n").as_bytes())?;
    part.sync()?;
    std::fs::rename(part.path(), &path)?;
    Ok(sync_dir(dir)?)
}

/// The first line of a password file that only its owner can read; the daemon has the same rule.
pub(crate) fn from_file(path: &Path) -> Result<String> {
    let shown = path.display();
    let unread = || Wrong(format!("cannot read the password file {shown}"));
    let mut file = File::open(path).with_context(unread)?;
    // The mode of the opened file; the path may already lead elsewhere.
    let mode = file.metadata().with_context(unread)?.permissions().mode();
    if mode & 0o077 != 0 {
        bail!(Wrong(format!(
            "others may read the password file {shown}, whose mode is {:04o}: chmod 600 it, and \
             change the password if others have been here",
            mode & 0o7777
        )));
    }
    let mut text = String::new();
    file.read_to_string(&mut text).with_context(unread)?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

/// Reads an O/R address; `what` names its use in the error.
///
/// # Errors
/// [`Wrong`].
pub(crate) fn address(what: &str, text: &str) -> Result<ORName> {
    text.parse::<ORName>().map_err(|error| {
        let (error, text) = (error.to_string(), format!("{text:?}"));
        let text = if error.contains(&text) { String::new() } else { format!(" {text}") };
        Wrong(format!("{what}{text}: invalid O/R address: {error}")).into()
    })
}

impl Profile {
    /// Our own name.
    ///
    /// # Errors
    /// [`Wrong`].
    pub(crate) fn user(&self) -> Result<ORName> {
        address("the profile's user", &self.user)
    }

    /// The label of what is submitted without one.
    ///
    /// # Errors
    /// [`Wrong`].
    fn label(&self) -> Result<Option<SecurityLabel>> {
        let label = self.label.as_deref().map(str::parse::<SecurityLabel>).transpose();
        label.map_err(|error| Wrong(format!("the profile's label: {error}")).into())
    }

    /// The arguments of the bind.
    ///
    /// # Errors
    /// [`Wrong`].
    pub(crate) fn login(&self) -> Result<ua::Login> {
        let octets = |text: &Option<String>| text.clone().map(Bytes::from);
        let password = Bytes::from(self.password.read()?.into_bytes());
        Ok(ua::Login {
            mta: self.mta.clone(),
            user: self.user()?,
            password: Password::new(password, PasswordForm::Ia5),
            called: Selectors {
                transport: octets(&self.tsel),
                session: octets(&self.ssel),
                presentation: octets(&self.psel),
            },
            label: self.label()?,
            answer_timeout: self.answer_timeout.unwrap_or(ua::ANSWER_TIMEOUT),
            edition: match self.edition {
                StoreEdition::Of1988 => ua::Edition::Of1988,
                StoreEdition::Of1994 => ua::Edition::Of1994,
            },
        })
    }

    /// The address book, beside the profiles.
    pub(crate) fn book(&self) -> PathBuf {
        self.home.join("book.toml")
    }

    /// The record of what was sent.
    pub(crate) fn sent_log(&self) -> PathBuf {
        self.inbox().join("sent.log")
    }

    /// The arguments of the bind to its message store.
    ///
    /// # Errors
    /// [`Wrong`].
    pub(crate) fn store_login(&self) -> Result<ua::Login> {
        let Some(store) = &self.store else {
            bail!(Wrong(format!(
                "profile {} has no message store: add store = \"HOST:PORT\", the MTA's P7 listener, or take \
                 what waits with xuxa receive",
                self.name
            )));
        };
        Ok(ua::Login { mta: store.clone(), ..self.login()? })
    }

    /// The directory of received messages.
    pub(crate) fn inbox(&self) -> PathBuf {
        self.inbox.clone().unwrap_or_else(|| data_home().join("xuxa").join(&self.name))
    }
}

fn data_home() -> PathBuf {
    if let Some(dir) = std::env::var_os("XDG_DATA_HOME") {
        return dir.into();
    }
    let home = std::env::var_os("HOME").map_or_else(|| PathBuf::from("."), PathBuf::from);
    home.join(".local/share")
}

/// The default configuration file.
pub(crate) fn default_file() -> PathBuf {
    if let Some(dir) = std::env::var_os("XDG_CONFIG_HOME") {
        return PathBuf::from(dir).join("xuxa/config.toml");
    }
    let home = std::env::var_os("HOME").map_or_else(|| PathBuf::from("."), PathBuf::from);
    home.join(".config/xuxa/config.toml")
}

/// Loads a profile: the named one, else the file's default, else its only one.
pub(crate) fn load(file: Option<&Path>, name: Option<&str>) -> Result<Profile> {
    let path = file.map_or_else(default_file, Path::to_path_buf);
    let text = std::fs::read_to_string(&path).with_context(|| {
        format!(
            "cannot read the profiles in {}: create the file (docs/xuxa.md shows one) or name another with --config",
            path.display()
        )
    })?;
    let file: Profiles = toml::from_str(&text).with_context(|| format!("in {}", path.display()))?;
    let names: Vec<&str> = file.profile.keys().map(String::as_str).collect();
    let only = match names.as_slice() {
        [one] => Some(*one),
        _ => None,
    };
    let Some(name) = name.or(file.default.as_deref()).or(only) else {
        bail!("{} has several profiles: choose with --profile {}", path.display(), names.join("|"));
    };
    let Some(profile) = file.profile.get(name) else {
        bail!("{} has no profile {name:?}; it has {}", path.display(), names.join(", "));
    };
    let mut profile = profile.clone();
    name.clone_into(&mut profile.name);
    profile.known = file.profile.values().map(|profile| profile.user.clone()).collect();
    // Paths are relative to the configuration file.
    let base = path.parent().map_or_else(PathBuf::new, Path::to_path_buf);
    profile.inbox = profile.inbox.map(|p| base.join(p));
    profile.password.file = profile.password.file.map(|p| base.join(p));
    profile.home = base;
    Ok(profile)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;

    fn write_private(path: &Path, text: &str) {
        std::fs::write(path, text).unwrap();
        std::fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
    }

    const TWO: &str = r#"
        default = "ops"
        [profile.ops]
        mta = "127.0.0.1:5010"
        user = "/C=XX/ADMD=NATO/PRMD=NAPLES/S=OPS"
        password = { file = "ops.pw" }
        inbox = "in"
        [profile.log]
        mta = "127.0.0.1:5010"
        user = "/C=XX/ADMD=NATO/PRMD=NAPLES/S=LOG"
        password = { env = "LOG_PASSWORD" }
    "#;

    #[test]
    fn chooses_the_named_the_default_or_the_only_one() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.toml");
        std::fs::write(&file, TWO).unwrap();
        let ops = load(Some(&file), None).unwrap();
        assert_eq!((ops.name.as_str(), ops.inbox()), ("ops", dir.path().join("in")));
        assert!(ops.user.ends_with("OPS"));
        assert!(load(Some(&file), Some("log")).unwrap().user.ends_with("LOG"));
        let missing = load(Some(&file), Some("x")).unwrap_err().to_string();
        assert!(missing.contains("log, ops"), "{missing}");
        write_private(&dir.path().join("ops.pw"), "secret\n");
        assert_eq!(ops.password.read().unwrap(), "secret");
    }

    #[test]
    fn a_wrong_setting_is_named_once_and_has_its_type() {
        let error_text = |result: Result<()>| {
            let error = result.unwrap_err();
            assert!(error.is::<Wrong>(), "{error:#}");
            format!("{error:#}")
        };
        let user = |text: &str| error_text(address("recipient", text).map(drop));
        assert_eq!(user("garbage").matches("garbage").count(), 1, "{}", user("garbage"));
        let text = user("C=XX;O=");
        assert!(text.starts_with("recipient \"C=XX;O=\": invalid O/R address: "), "{text}");

        let read = |env: Option<&str>, file: Option<PathBuf>| {
            let source = PasswordSource { env: env.map(str::to_owned), file };
            error_text(source.read().map(drop))
        };
        assert!(read(Some("XUXA_NO_SUCH_VARIABLE"), None).contains("XUXA_NO_SUCH_VARIABLE"));
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pw");
        assert!(read(None, Some(file.clone())).contains("cannot read the password file"));
        write_private(&file, "\n");
        assert!(read(None, Some(file.clone())).contains("empty"));
        std::fs::write(&file, "secret\n").unwrap();
        for mode in [0o644, 0o640, 0o604, 0o620] {
            std::fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            let text = read(None, Some(file.clone()));
            assert!(text.contains("others may read") && text.contains("chmod 600"), "{text}");
            assert!(text.contains(&format!("0{mode:03o}")) && !text.contains("secret"), "{text}");
        }
        assert!(read(None, None).contains("{ env = \"NAME\" }"));
    }

    #[test]
    fn refuses_unknown_keys_and_literal_passwords() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.toml");
        std::fs::write(&file, TWO.replace("inbox", "inbocks")).unwrap();
        assert!(format!("{:#}", load(Some(&file), None).unwrap_err()).contains("inbocks"));
        std::fs::write(&file, TWO.replace("{ file = \"ops.pw\" }", "\"secret\"")).unwrap();
        assert!(load(Some(&file), None).is_err());
    }
}
