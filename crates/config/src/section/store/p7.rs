//! `[p7]`: the message store, its listeners, quotas and rules of retention.

use crate::problem::Problems;
use crate::section::channel::default_tcp;
use crate::section::listen::Listeners;
use crate::section::peer::selectors;
use crate::tree::Section;
use crate::value;
use dscp::Dscp;
use node::config::{ListenerService, StoreConfig};
use node::mailbox::{Quota, Rule, Rules, Settings, Status};
use std::time::Duration;
use toml::Spanned;

/// Bounds of the age at which items are deleted: a message that was just read is not gone at once.
const AGES: (Duration, Duration) = (Duration::from_mins(1), Duration::from_hours(24 * 3650));
/// Bounds of the time after which a copy is reported that finds no room.
const FULL: (Duration, Duration) = (Duration::from_secs(1), Duration::from_hours(216));

/// Reads the section; without it nobody binds over P7, and what is stored stays.
pub(crate) fn read(
    top: &mut Section<'_>,
    problems: &mut Problems,
    listeners: &mut Listeners<'_>,
) -> StoreConfig {
    let mut config = StoreConfig::default();
    let Some(mut section) = top.table(problems, "p7") else { return config };
    let present = section.has("listen");
    let addresses = section.list(problems, "listen", &value::socket);
    let local = selectors(&mut section, problems, ["tsel", "ssel", "psel"]);
    let dscp = section.optional(problems, "dscp", &value::dscp);
    let tcp = default_tcp(dscp.map_or(Dscp::CS0, Spanned::into_inner));
    if !present || addresses.as_ref().is_some_and(|list| list.get_ref().is_empty()) {
        let span = addresses.as_ref().map_or(section.span(), Spanned::span);
        let remedy = "write listen = \"127.0.0.1:5011\", or remove [p7]";
        problems.error(span, "[p7] listens nowhere", "no address", remedy);
    }
    config.settings = Settings {
        quota: read_quota(&mut section, problems),
        rules: read_rules(&mut section, problems),
    };
    let full = section.optional(problems, "full", &|v| value::within(v, FULL.0, FULL.1));
    config.full = full.map_or(config.full, Spanned::into_inner);
    section.finish(problems);
    for address in addresses.map(Spanned::into_inner).unwrap_or_default() {
        let service = ListenerService::P7 { local: local.clone() };
        listeners.add(problems, &address, tcp.clone(), "p7".to_owned(), service);
    }
    config
}

fn read_quota(section: &mut Section<'_>, problems: &mut Problems) -> Quota {
    let most = u64::from(u32::MAX >> 1);
    let items = section.optional(problems, "items", &|v| value::integer(v, 1, most));
    let octets = section.optional(problems, "octets", &value::size);
    let reserve = section.optional(problems, "reserve", &|v| value::integer(v, 0, 100));
    let reserve = reserve.map_or(20, Spanned::into_inner);
    Quota {
        items: items.map(Spanned::into_inner),
        octets: octets.map(Spanned::into_inner),
        reserve: u8::try_from(reserve).unwrap_or(100),
    }
}

fn read_rules(section: &mut Section<'_>, problems: &mut Problems) -> Rules {
    let Some(mut table) = section.table(problems, "keep") else { return Rules::default() };
    let statuses = [
        ("new", Some(Status::New)),
        ("listed", Some(Status::Listed)),
        ("processed", Some(Status::Processed)),
        ("all", None),
    ];
    let mut rules = Vec::new();
    for (key, status) in statuses {
        let age = table.optional(problems, key, &|v| value::within(v, AGES.0, AGES.1));
        rules.extend(age.map(|age| Rule { status, age: age.into_inner() }));
    }
    table.finish(problems);
    // Four at the most, fewer than a mailbox may have.
    Rules::new(rules).unwrap_or_default()
}
