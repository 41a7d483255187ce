//! Changes of distribution lists in words, for the log.

use super::{List, ReportPolicy, SubmitPermission};

/// Addresses that are named; of more there is a number.
const MAX_NAMED: usize = 3;

/// A new list.
#[must_use]
pub fn added(list: &List) -> String {
    let members: Vec<&str> = list.members.iter().map(String::as_str).collect();
    let mut text = format!("{} with {}", list.address, members_of(&members));
    if list.submit != SubmitPermission::Anyone {
        text.push_str(&format!("; submit {}", permission(&list.submit)));
    }
    if list.reports != ReportPolicy::Originator {
        text.push_str(&format!("; reports {}", policy(list.reports)));
    }
    if let Some(owner) = &list.owner {
        text.push_str(&format!("; owner {owner}"));
    }
    text
}

/// What is other than before, with the members that came and went.
pub(crate) fn changed(before: &List, after: &List, new: &[&str], gone: &[&str]) -> String {
    let mut all = Vec::new();
    if !new.is_empty() {
        all.push(format!("{} more", members_of(new)));
    }
    if !gone.is_empty() {
        all.push(format!("{} fewer", members_of(gone)));
    }
    if before.submit != after.submit {
        all.push(format!(
            "submit {}, was {}",
            permission(&after.submit),
            permission(&before.submit)
        ));
    }
    if before.reports != after.reports {
        all.push(format!("reports {}, was {}", policy(after.reports), policy(before.reports)));
    }
    if before.owner != after.owner {
        let owner = |list: &List| list.owner.clone().unwrap_or_else(|| "nobody".to_owned());
        all.push(format!("owner {}, was {}", owner(after), owner(before)));
    }
    if all.is_empty() {
        all.push("as it was".to_owned());
    }
    format!("{}: {}", after.address, all.join("; "))
}

fn members_of(members: &[&str]) -> String {
    let named = members.get(..MAX_NAMED).unwrap_or(members).join(", ");
    let dots = if members.len() > MAX_NAMED { ", ..." } else { "" };
    format!("{} members ({named}{dots})", members.len())
}

fn permission(submit: &SubmitPermission) -> String {
    match submit {
        SubmitPermission::Anyone => "anyone".to_owned(),
        SubmitPermission::Members => "members".to_owned(),
        SubmitPermission::Only(all) => {
            let named = all.get(..MAX_NAMED).unwrap_or(all).join(", ");
            let more = all.len().saturating_sub(MAX_NAMED);
            if more == 0 { named } else { format!("{named} and {more} more") }
        }
    }
}

fn policy(reports: ReportPolicy) -> &'static str {
    match reports {
        ReportPolicy::Originator => "originator",
        ReportPolicy::Owner => "owner",
        ReportPolicy::Both => "both",
        ReportPolicy::Nobody => "nobody",
    }
}
