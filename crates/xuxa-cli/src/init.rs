//! `xuxa init`: asks for what a profile has, tries it, and writes it.

use crate::terminal;
use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use clap::Args;
use osi::api::Selectors;
use p1::bind::{Password, PasswordForm};
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use ua::store::{BindRefused, Store, StoreError};
use ua::{Clock, Interrupted, Lost, Refused, Services, User, form};

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Name of the new profile
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Host and port of the MTA's P3 listener
    #[arg(long, value_name = "HOST:PORT")]
    mta: Option<String>,
    /// Host and port of the message store (P7), or none [default: the MTA's host and the port after that of P3, if
    /// this user can bind there]
    #[arg(long, value_name = "HOST:PORT")]
    store: Option<String>,
    /// Your O/R address
    #[arg(long, value_name = "ADDRESS")]
    user: Option<String>,
    /// Read the password from the first line of standard input, and ask nothing
    #[arg(long)]
    password_stdin: bool,
    /// Write the profile without a bind
    #[arg(long)]
    no_bind: bool,
}

/// Runs `xuxa init`.
pub(crate) async fn run(
    args: &InitArgs,
    config: &Path,
    answer_timeout: Duration,
    interrupted: Interrupted,
) -> ExitCode {
    match init(args, config, answer_timeout, interrupted).await {
        Ok(lines) => {
            terminal::print(&lines);
            ExitCode::SUCCESS
        }
        Err(error) => {
            terminal::report_error(&format!("{error:#}"));
            ExitCode::from(2)
        }
    }
}

/// The profile to be.
struct New {
    name: String,
    mta: String,
    store: Option<String>,
    /// Nobody gave the store: it is where ours have it, and may not be there.
    store_is_guess: bool,
    user: String,
    password: String,
}

async fn init(
    args: &InitArgs,
    config: &Path,
    answer_timeout: Duration,
    interrupted: Interrupted,
) -> Result<String> {
    let mut new = ask(args)?;
    let name = form::address(&new.user)?;
    new.user = name.address.to_string();
    let dir = config.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let password_file = dir.join(format!("{}.password", new.name));
    refuse_existing(config, &new.name, &password_file)?;
    match args.no_bind {
        false => bind(&mut new, name, answer_timeout, interrupted).await?,
        // What nobody gave and nobody tried is not written.
        true if new.store_is_guess => new.store = None,
        true => {}
    }
    write(config, dir, &password_file, &new)?;
    let (shown, try_it) = (config.display(), if new.store.is_some() { "list" } else { "receive" });
    let store = match &new.store {
        Some(store) => format!("its message store is {store}"),
        None => {
            "it has no message store: the verbs on a mailbox need a line `store = \"HOST:PORT\"`"
                .to_owned()
        }
    };
    Ok(format!(
        "profile {} is in {shown}, its password in {}; {store}\ntry: xuxa --profile {} {try_it}",
        new.name,
        password_file.display(),
        new.name
    ))
}

/// Where an MTA of ours listens for P7 if its configuration is like the shipped ones: the port after that of P3.
fn usual_store(mta: &str) -> Option<String> {
    let (host, port) = mta.rsplit_once(':')?;
    let port = port.parse::<u16>().ok()?.checked_add(1)?;
    Some(format!("{host}:{port}"))
}

/// What the options lack is asked for, if somebody can answer.
fn ask(args: &InitArgs) -> Result<New> {
    let can_ask = std::io::stdin().is_terminal() && !args.password_stdin;
    let one = |given: &Option<String>, option: &str, question: &str, otherwise: Option<&str>| {
        if let Some(given) = given {
            return Ok(given.trim().to_owned());
        }
        match (can_ask, otherwise) {
            (true, _) => {
                let answer = line(question)?;
                Ok(if answer.is_empty() {
                    otherwise.unwrap_or_default().to_owned()
                } else {
                    answer
                })
            }
            (false, Some(otherwise)) => Ok(otherwise.to_owned()),
            (false, None) => bail!("give {option}: standard input is not a terminal"),
        }
    };
    let mta = one(&args.mta, "--mta", "MTA, host:port of its P3 listener: ", None)?;
    let usual = usual_store(&mta).unwrap_or_default();
    let shown = if usual.is_empty() { "none" } else { &usual };
    let question = format!("message store (P7), host:port, or none [{shown}]: ");
    let store = one(&args.store, "--store", &question, Some(&usual))?;
    let store_is_guess = args.store.is_none() && store == usual;
    let store = (!store.is_empty() && store != "none").then_some(store);
    let user = one(&args.user, "--user", "your O/R address (/C=XX/ADMD=A/PRMD=P/S=NAME): ", None)?;
    let name = one(&args.name, "--name", "name of the profile [default]: ", Some("default"))?;
    if !ua::book::is_name(&name) || name.starts_with('.') {
        bail!("invalid name {name:?}: letters, digits, `_` and `-`");
    }
    let password = match (args.password_stdin, can_ask) {
        (true, _) => {
            let mut first = String::new();
            std::io::stdin().lock().read_line(&mut first).context("cannot read the password")?;
            first.trim_end_matches(['\r', '\n']).to_owned()
        }
        (false, true) => rpassword::prompt_password("password: ").context("cannot ask")?,
        (false, false) => bail!("give --password-stdin: standard input is not a terminal"),
    };
    if password.is_empty() {
        bail!("the password is empty");
    }
    Ok(New { name, mta, store, store_is_guess, user, password })
}

fn line(question: &str) -> Result<String> {
    let mut out = std::io::stderr().lock();
    write!(out, "{question}").and_then(|()| out.flush()).context("cannot ask")?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).context("cannot read the answer")?;
    Ok(answer.trim().to_owned())
}

/// Nothing that exists is overwritten.
fn refuse_existing(config: &Path, name: &str, password_file: &Path) -> Result<()> {
    if password_file.symlink_metadata().is_ok() {
        bail!("{} exists: choose another name, or remove it first", password_file.display());
    }
    let text = match fs::read_to_string(config) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => bail!("cannot read {}: {error}", config.display()),
    };
    let table: toml::Table =
        toml::from_str(&text).with_context(|| format!("in {}", config.display()))?;
    if table.get("profile").and_then(|p| p.get(name)).is_some() {
        bail!("{} has a profile {name:?} already: choose another --name", config.display());
    }
    Ok(())
}

/// Tries the profile, over P3 and, with a store, over P7; states what is wrong.
async fn bind(
    new: &mut New,
    user: p1::names::ORName,
    answer_timeout: Duration,
    interrupted: Interrupted,
) -> Result<()> {
    let login = ua::Login {
        label: None,
        mta: new.mta.clone(),
        user,
        password: Password::new(Bytes::from(new.password.clone().into_bytes()), PasswordForm::Ia5),
        called: Selectors::default(),
        answer_timeout,
        edition: ua::Edition::default(),
    };
    if !new.store_is_guess
        && let Some(store) = &new.store
    {
        bind_store(store, &login, interrupted.clone()).await?;
    }
    bind_mta(new, &login, interrupted.clone()).await?;
    // Only once the MTA on that host knows the password.
    if new.store_is_guess
        && let Some(store) = &new.store
        && let Err(error) = bind_store(store, &login, interrupted).await
    {
        terminal::report_error(&format!("no --store was given, and {store} is none: {error:#}"));
        new.store = None;
    }
    Ok(())
}

/// Binds over P7.
async fn bind_store(store: &str, login: &ua::Login, interrupted: Interrupted) -> Result<()> {
    let login = ua::Login { mta: store.to_owned(), ..login.clone() };
    let error = match Store::bind(&login, None, Clock::start(), interrupted).await {
        Ok(bound) => return bound.unbind().await.context("the message store: after the bind"),
        Err(error) => error,
    };
    match &error {
        StoreError::Refused(BindRefused::Credentials | BindRefused::Busy) => {
            bail!("the message store at {store} answers, and refused the bind: {}", why(&error))
        }
        StoreError::Interrupted => bail!(error),
        _ => {}
    }
    if let Some(why) = ua::diagnose::diagnose(store).await {
        bail!("the message store: {why}");
    }
    bail!("the message store at {store} refused the bind: {}; is it the P7 listener?", why(&error))
}

/// The reason alone.
fn why(error: &StoreError) -> String {
    match error {
        StoreError::Refused(why) => why.to_string(),
        other => other.to_string(),
    }
}

async fn bind_mta(new: &New, login: &ua::Login, interrupted: Interrupted) -> Result<()> {
    let bound = User::bind(login, Services::Submission, None, Clock::start(), interrupted).await;
    match bound {
        Ok(user) => user.unbind().await.context("after the bind"),
        Err(error) => {
            if error.is::<Refused>() {
                bail!("the MTA answers, and {error:#}");
            }
            if let Some(why) = ua::diagnose::diagnose(&new.mta).await {
                bail!("{why}");
            }
            if error.is::<Lost>() {
                bail!(
                    "at {} an X.400 system answers, and does not bind: {error:#}; is it the P3 \
                     listener, and does it need selectors (tsel, ssel, psel in the profile)? \
                     --no-bind writes the profile as it is",
                    new.mta
                );
            }
            Err(error)
        }
    }
}

/// Writes the password file, then the profile: both readable by their owner only.
fn write(config: &Path, dir: &Path, password_file: &Path, new: &New) -> Result<()> {
    let shown = dir.display();
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .with_context(|| format!("cannot make {shown}"))?;
    let unwritten = |path: &Path| format!("cannot write {}", path.display());
    let mut file = private(password_file, true).with_context(|| unwritten(password_file))?;
    writeln!(file, "{}", new.password)
        .and_then(|()| file.sync_all())
        .with_context(|| unwritten(password_file))?;
    let name = password_file.file_name().unwrap_or_default().to_string_lossy();
    let mut text = format!(
        "\n[profile.{}]\nmta = {}\n",
        toml::Value::from(new.name.as_str()),
        toml::Value::from(new.mta.as_str())
    );
    if let Some(store) = &new.store {
        text.push_str(&format!("store = {}\n", toml::Value::from(store.as_str())));
    }
    text.push_str(&format!(
        "user = {}\npassword = {{ file = {} }}\n",
        toml::Value::from(new.user.as_str()),
        toml::Value::from(name.as_ref())
    ));
    let mut file = private(config, false).with_context(|| unwritten(config))?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    written.and_then(|()| File::open(dir)?.sync_all()).with_context(|| unwritten(config))
}

fn private(path: &Path, new: bool) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    match new {
        true => options.write(true).create_new(true),
        false => options.append(true).create(true),
    };
    options.mode(0o600).open(path)
}

/// The file of profiles: the given one, or the default.
pub(crate) fn config_file(given: Option<&Path>) -> PathBuf {
    given.map_or_else(crate::profile::default_file, Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_profile_is_added_privately_and_nothing_is_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let config = directory.path().join("new/config.toml");
        let dir = config.parent().unwrap().to_owned();
        let make = |name: &str| {
            let password_file = dir.join(format!("{name}.password"));
            refuse_existing(&config, name, &password_file)?;
            let new = New {
                name: name.to_owned(),
                mta: "h:1".to_owned(),
                store: None,
                store_is_guess: false,
                user: "/S=A\"/C=XX".to_owned(),
                password: "se\"cret".to_owned(),
            };
            write(&config, &dir, &password_file, &new)
        };
        make("a").unwrap();
        make("b.c").unwrap();
        assert!(make("a").unwrap_err().to_string().contains("exists"));
        fs::remove_file(dir.join("a.password")).unwrap();
        assert!(make("a").unwrap_err().to_string().contains("has a profile"));
        let profile = crate::profile::load(Some(&config), Some("b.c")).unwrap();
        assert_eq!(profile.password.read().unwrap(), "se\"cret");
        assert_eq!(profile.user, "/S=A\"/C=XX");
        for file in ["config.toml", "b.c.password"] {
            let mode = fs::metadata(dir.join(file)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{file}");
        }
    }
}
