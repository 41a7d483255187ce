//! `xuxa register`: what the MTA is to deliver to the profile's user from now on.

use crate::send::Names;
use crate::submission::MtaAccess;
use crate::{profile, quantity, terminal};
use anyhow::{Result, bail};
use clap::Args;
use p1::flags::Priority;
use p1::p3::{Controls, RegisterArgument};
use serde_json::json;
use std::process::ExitCode;
use ua::{NotAccepted, Services};

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub(crate) struct RegisterArgs {
    /// Who gets the messages for this user instead: an O/R address, or a name of the address book
    #[arg(long, value_name = "ADDRESS", conflicts_with = "no_redirect")]
    redirect_to: Option<String>,
    /// Redirect no longer
    #[arg(long)]
    no_redirect: bool,
    /// Longest content that is delivered; the originators of longer ones get a report
    #[arg(long, value_name = "SIZE", value_parser = quantity::parse_size)]
    max_length: Option<u64>,
    /// Lowest priority that is delivered from the next bind on, what is lower waits: urgent, normal or
    /// non-urgent
    #[arg(long, value_name = "PRIORITY", value_parser = priority)]
    lowest_priority: Option<Priority>,
    /// Register nothing any more: everything is delivered
    #[arg(
        long,
        conflicts_with_all = ["redirect_to", "no_redirect", "max_length", "lowest_priority"]
    )]
    clear: bool,
}

/// Parses a priority.
pub(crate) fn priority(text: &str) -> Result<Priority, String> {
    let all = [Priority::Urgent, Priority::Normal, Priority::NonUrgent];
    let found = all.into_iter().find(|priority| priority.name() == text);
    found.ok_or_else(|| "a priority is urgent, normal or non-urgent".to_owned())
}

/// Runs `xuxa register`.
pub(crate) async fn run(access: &MtaAccess<'_>, args: &RegisterArgs, json: bool) -> ExitCode {
    match register(access, args, json).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            terminal::report_error(&format!("{error:#}"));
            ExitCode::from(if error.is::<profile::Wrong>() { 2 } else { 1 })
        }
    }
}

fn argument(access: &MtaAccess<'_>, args: &RegisterArgs) -> Result<RegisterArgument> {
    if args.clear {
        return Ok(RegisterArgument {
            max_content_length: Some(None),
            content_types: Some(None),
            default_controls: Some(Controls::default()),
            alternate: Some(None),
            undone: None,
        });
    }
    let mut argument = RegisterArgument::default();
    if let Some(text) = &args.redirect_to {
        let mut names = Names::load(access.profile)?.all(text)?.into_iter();
        let (Some(name), None) = (names.next(), names.next()) else {
            bail!(profile::Wrong(format!(
                "{text:?} is not one address: only one gets the messages"
            )));
        };
        argument.alternate = Some(Some(name));
    } else if args.no_redirect {
        argument.alternate = Some(None);
    }
    if let Some(octets) = args.max_length {
        let length = i64::try_from(octets).unwrap_or(i64::MAX);
        argument.max_content_length = Some(Some(length));
    }
    argument.default_controls = args
        .lowest_priority
        .map(|lowest| Controls { lowest_priority: Some(lowest), ..Controls::default() });
    Ok(argument)
}

async fn register(access: &MtaAccess<'_>, args: &RegisterArgs, json: bool) -> Result<()> {
    let argument = argument(access, args)?;
    let mut user = access.bind(Services::Submission).await?;
    if let Err(error) = user.register(&argument).await {
        user.abort().await;
        let why = match error.downcast_ref::<NotAccepted>() {
            // What the MTA refused is not a message.
            Some(NotAccepted(why)) => why.clone(),
            None => format!("{error:#}"),
        };
        bail!("nothing is registered: {why}");
    }
    user.unbind().await?;
    match json {
        true => terminal::print_json(&json!({ "registered": true, "cleared": args.clear })),
        false if args.clear => terminal::print("nothing is registered any more"),
        false => terminal::print("registered"),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_have_the_names_of_the_standard() {
        assert_eq!(priority("urgent"), Ok(Priority::Urgent));
        assert_eq!(priority("non-urgent"), Ok(Priority::NonUrgent));
        assert!(priority("flash").is_err());
    }
}
