//! Templates: TOML files of options of `xuxa send`.

use crate::profile::Wrong;
use anyhow::{Context as _, Result, bail};
use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use std::ffi::OsString;
use std::path::Path;

/// Largest template, octets.
const MAX_TEMPLATE: u64 = 1 << 20;

/// The arguments that a template adds: its keys are the long names of options, and one that is given
/// on the command line replaces the template's.
///
/// # Errors
/// [`Wrong`]: no such template, or a key that is not an option.
pub(crate) fn arguments(
    home: &Path,
    name: &str,
    send: &Command,
    given: &ArgMatches,
) -> Result<Vec<OsString>> {
    if !ua::book::is_name(name) || name.starts_with('.') {
        bail!(Wrong(format!("invalid name of a template: {name:?}")));
    }
    let path = home.join("templates").join(format!("{name}.toml"));
    let shown = path.display();
    let read = || {
        let length = path.metadata()?.len();
        if length > MAX_TEMPLATE {
            return Err(std::io::Error::other("it is larger than 1 MiB"));
        }
        std::fs::read_to_string(&path)
    };
    let text = read().with_context(|| Wrong(format!("cannot read the template {shown}")))?;
    let table: toml::Table =
        toml::from_str(&text).with_context(|| Wrong(format!("in the template {shown}")))?;
    let mut arguments = Vec::new();
    for (key, value) in &table {
        let option = send.get_arguments().find(|a| a.get_long() == Some(key.as_str()));
        let option = option.filter(|_| key != "template").map(|option| option.get_id().as_str());
        // All verbs have it.
        let option = option.or_else(|| (key == "answer-timeout").then_some("answer_timeout"));
        let Some(option) = option else {
            bail!(Wrong(format!("{shown}: {key:?} is not an option of xuxa send")));
        };
        if given.value_source(option) == Some(ValueSource::CommandLine) {
            continue;
        }
        let values = match value {
            toml::Value::Array(all) => all.as_slice(),
            one => std::slice::from_ref(one),
        };
        for value in values {
            match value {
                toml::Value::Boolean(true) => arguments.push(format!("--{key}").into()),
                toml::Value::Boolean(false) => {}
                toml::Value::String(text) => arguments.push(format!("--{key}={text}").into()),
                toml::Value::Integer(n) => arguments.push(format!("--{key}={n}").into()),
                _ => bail!(Wrong(format!("{shown}: {key} is neither text, number nor true"))),
            }
        }
    }
    Ok(arguments)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn options_given_replace_those_of_the_template() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("templates")).unwrap();
        let write = |text: &str| {
            std::fs::write(directory.path().join("templates/daily.toml"), text).unwrap();
        };
        let arguments = || {
            let command = crate::Cli::command();
            let send = command.find_subcommand("send").unwrap().clone();
            let line = ["xuxa", "send", "--template", "daily", "--precedence", "flash"];
            let matches = command.try_get_matches_from(line).unwrap();
            let given = matches.subcommand_matches("send").unwrap().clone();
            arguments(directory.path(), "daily", &send, &given)
        };
        write(
            "to = [\"ops\", \"log\"]\nprecedence = \"routine\"\ncodress = -3\nreturn-content = true\n",
        );
        let made = arguments().unwrap();
        assert_eq!(made, ["--codress=-3", "--return-content", "--to=ops", "--to=log"]);
        write("tto = 1");
        assert!(arguments().unwrap_err().to_string().contains("not an option"));
        write("to = 1.5");
        assert!(arguments().is_err());
        std::fs::remove_file(directory.path().join("templates/daily.toml")).unwrap();
        assert!(arguments().unwrap_err().to_string().contains("cannot read the template"));
    }
}
