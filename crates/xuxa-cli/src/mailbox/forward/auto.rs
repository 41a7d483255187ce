//! `xuxa auto-forward`: what the message store forwards by itself.

use crate::mailbox::with_store;
use crate::profile::Wrong;
use crate::send::Names;
use crate::submission::MtaAccess;
use crate::terminal;
use anyhow::{Result, bail};
use base::Precedence;
use clap::Args;
use p1::names::ORName;
use serde::Serialize;
use ua::store::Find;

#[derive(Debug, Args)]
pub(crate) struct AutoForwardArgs {
    /// To whom: an O/R address such as /C=XX/ADMD=NATO/PRMD=ACT/S=OPS, or a name of the address book
    #[arg(long, value_name = "ADDRESS", required_unless_present = "off")]
    to: Vec<String>,
    /// Only messages of this precedence and above
    #[arg(long, short, conflicts_with = "off")]
    precedence: Option<Precedence>,
    /// Delete each message once it is forwarded; an originator who asked for it is notified of non-receipt
    #[arg(long, conflicts_with = "off")]
    delete: bool,
    /// The number of the registration: another one with this number is replaced
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(i64).range(1..=32_767))]
    registration: i64,
    /// Forward nothing any more under this number
    #[arg(long, conflicts_with = "to")]
    off: bool,
}

#[derive(Debug, Serialize)]
struct Registered {
    registration: i64,
    to: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    precedence: Option<Precedence>,
    delete: bool,
}

/// Runs `xuxa auto-forward`.
pub(in crate::mailbox) async fn auto_forward(
    access: &MtaAccess<'_>,
    args: &AutoForwardArgs,
    json: bool,
) -> Result<u8> {
    let names = Names::load(access.profile)?;
    let mut to: Vec<ORName> = Vec::new();
    for text in &args.to {
        to.extend(names.all(text)?);
    }
    let me = access.profile.user()?;
    if to.iter().any(|name| name.address.same_as(&me.address)) {
        bail!(Wrong("--to is the mailbox itself: the message is there already".to_owned()));
    }
    let filter = args.precedence.and_then(|precedence| Find::new().at_least(precedence).filter());
    with_store(access, async |store| match args.off {
        true => Ok(store.deregister_forward(args.registration).await?),
        false => Ok(store.register_forward(args.registration, filter, &to, args.delete).await?),
    })
    .await?;
    let registered = Registered {
        registration: args.registration,
        to: to.iter().map(|name| name.address.to_string()).collect(),
        precedence: args.precedence,
        delete: args.delete,
    };
    if json {
        terminal::print_json(&registered);
    } else {
        terminal::print(&registered.in_words());
    }
    Ok(0)
}

impl Registered {
    fn in_words(&self) -> String {
        let Registered { registration, to, precedence, delete } = self;
        if to.is_empty() {
            return format!("registration {registration} is removed");
        }
        let what = precedence.map_or("every message".to_owned(), |p| format!("{p} and above"));
        let after = if *delete { ", and deletes it" } else { "" };
        format!(
            "registration {registration}: the store forwards {what} to {}{after}",
            to.join(", ")
        )
    }
}
