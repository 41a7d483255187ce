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
use ua::store::{Find, MsError, Store, StoreError};
use ua::{Edition, Login};

#[derive(Debug, Args)]
pub(crate) struct AutoForwardArgs {
    /// To whom: an O/R address such as /C=XX/ADMD=NATO/PRMD=ACT/S=OPS, or a name of the address book
    #[arg(long, value_name = "ADDRESS", required_unless_present_any = ["off", "show"])]
    to: Vec<String>,
    /// Only messages of this precedence and above
    #[arg(long, short, conflicts_with = "off")]
    precedence: Option<Precedence>,
    /// Delete each message as it is forwarded: the mailbox never has it. An originator who asked for it is notified of
    /// non-receipt; if the forwarded message cannot be delivered, only a report of that is left
    #[arg(long, conflicts_with = "off")]
    delete: bool,
    /// The number of the registration: another one with this number is replaced
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(i64).range(1..=32_767))]
    registration: i64,
    /// Forward nothing any more under this number
    #[arg(long, conflicts_with = "to")]
    off: bool,
    /// Show what is registered, by the protocol of 1994
    #[arg(long, conflicts_with_all = ["to", "off", "precedence", "delete", "registration"])]
    show: bool,
}

#[derive(Debug, Serialize)]
struct Registered {
    registration: i64,
    to: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    precedence: Option<Precedence>,
    /// Of what is shown: whether there is a filter.
    #[serde(skip_serializing_if = "Option::is_none")]
    filtered: Option<bool>,
    delete: bool,
}

/// Runs `xuxa auto-forward`.
pub(in crate::mailbox) async fn auto_forward(
    access: &MtaAccess<'_>,
    args: &AutoForwardArgs,
    json: bool,
) -> Result<u8> {
    if args.show {
        return show(access, json).await;
    }
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
        true => match store.deregister_forward(args.registration).await {
            Err(StoreError::Operation(MsError::AutoActionRequest(_))) => {
                bail!("the store has no auto-forward with the number {}", args.registration)
            }
            other => Ok(other?),
        },
        false => Ok(store.register_forward(args.registration, filter, &to, args.delete).await?),
    })
    .await?;
    let registered = Registered {
        registration: args.registration,
        to: to.iter().map(|name| name.address.to_string()).collect(),
        precedence: args.precedence,
        filtered: None,
        delete: args.delete,
    };
    if json {
        terminal::print_json(&registered);
    } else {
        terminal::print(&registered.in_words());
    }
    Ok(0)
}

/// Shows what is registered.
async fn show(access: &MtaAccess<'_>, json: bool) -> Result<u8> {
    let later = Login { edition: Edition::Of1994, ..access.profile.store_login()? };
    let interrupted = access.interrupted.clone();
    let mut store = Store::bind(&later, access.pcap, access.clock, interrupted).await?;
    let registered = store.registered_forwards().await?;
    store.unbind().await?;
    let all: Vec<Registered> = registered
        .into_iter()
        .map(|(registration, forward)| Registered {
            registration,
            to: forward
                .arguments
                .recipients
                .iter()
                .map(|fields| fields.recipient.address.to_string())
                .collect(),
            precedence: None,
            filtered: Some(forward.filter.is_some()),
            delete: forward.delete_after,
        })
        .collect();
    if json {
        terminal::print_json(&Shown { registrations: all });
    } else if all.is_empty() {
        terminal::print("nothing is forwarded by the store");
    } else {
        all.iter().for_each(|registered| terminal::print(&registered.in_words()));
    }
    Ok(0)
}

#[derive(Debug, Serialize)]
struct Shown {
    registrations: Vec<Registered>,
}

impl Registered {
    fn in_words(&self) -> String {
        let Registered { registration, to, precedence, filtered, delete } = self;
        if to.is_empty() {
            return format!("registration {registration} is removed");
        }
        let what = match (precedence, filtered) {
            (Some(precedence), _) => format!("{precedence} and above"),
            (None, Some(true)) => "what its filter takes".to_owned(),
            (None, _) => "every message".to_owned(),
        };
        let after = if *delete { ", and deletes it" } else { "" };
        format!(
            "registration {registration}: the store forwards {what} to {}{after}",
            to.join(", ")
        )
    }
}
