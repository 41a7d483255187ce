//! Clearances: `clearance` of a peer, and `[[clearance]]` for users; `[security]`.

use crate::address;
use crate::problem::Problems;
use crate::tree::{Bad, Section};
use crate::value;
use node::config::{Route, Target};
use p1::clearance::MAX_ENTRIES;
use p1::names::{Attribute, ORAddress};
use p1::{Clearance, ClearanceEntry};
use std::collections::BTreeMap;
use toml::Spanned;
use toml::de::DeValue;

const REMEDY: &str = "write POLICY/CLASSIFICATION for each policy, as \"1.3.26.0.4406.0.5.1/secret\", and \
                      \"unlabelled\" if messages without a label may pass";

fn entry(value: &DeValue<'_>) -> Result<ClearanceEntry, Bad> {
    let text = value::text(value).map_err(|bad| Bad::new(bad.message, REMEDY))?;
    text.parse().map_err(|error| Bad::new(format!("no clearance: {error}"), REMEDY))
}

/// Reads the list under this key; `None` without one: no restriction.
pub(crate) fn entries(
    section: &mut Section<'_>,
    problems: &mut Problems,
    key: &'static str,
) -> Option<Clearance> {
    let list = section.list(problems, key, &entry)?;
    if list.get_ref().len() > MAX_ENTRIES {
        let message = format!("{} entries in one clearance", list.get_ref().len());
        problems.error(list.span(), message, "here", format!("write at most {MAX_ENTRIES}"));
    }
    Some(Clearance(list.into_inner().into_iter().map(Spanned::into_inner).collect()))
}

/// Whether contents are opened for the labels inside: `[security]`, which is optional.
pub(crate) fn open_contents(top: &mut Section<'_>, problems: &mut Problems) -> bool {
    let Some(mut section) = top.table(problems, "security") else { return false };
    let open = section.optional(problems, "open_contents", &value::boolean);
    section.finish(problems);
    open.is_some_and(Spanned::into_inner)
}

/// Whether a user of this site may be below this address.
fn concerns_anybody(prefix: &ORAddress, routes: &[Route]) -> bool {
    let own = prefix.attributes();
    let has_all = |all: &[(Attribute, String)], of: &[(Attribute, String)]| {
        of.iter().all(|attribute| all.contains(attribute))
    };
    let local = routes.iter().filter(|route| route.to == Target::Local);
    let mut local = local.map(|route| route.prefix.attributes());
    local.any(|route| has_all(&own, &route) || has_all(&route, &own))
}

/// Reads the clearances of users.
pub(crate) fn read(
    top: &mut Section<'_>,
    problems: &mut Problems,
    routes: &[Route],
) -> Vec<(ORAddress, Clearance)> {
    let mut users = Vec::new();
    let mut first = BTreeMap::new();
    for mut section in top.tables(problems, "clearance") {
        let remedy = "write address = \"/C=IT/ADMD=…/PRMD=…/S=…\": a user, or the leading attributes of many";
        let prefix = section.required(problems, "address", remedy, &address::or_address);
        if !section.has("labels") {
            let message = "[[clearance]] lacks labels";
            problems.error(section.span(), message, "labels is missing here", REMEDY);
        }
        let labels = entries(&mut section, problems, "labels");
        section.finish(problems);
        let Some((prefix, labels)) = prefix.zip(labels) else { continue };
        if let Some(earlier) = first.insert(prefix.get_ref().clone(), prefix.span()) {
            let message = format!("two clearances for {}", prefix.get_ref());
            problems.error(prefix.span(), message, "again", "remove one of them");
            problems.see_also(earlier, "first here");
        }
        if !concerns_anybody(prefix.get_ref(), routes) {
            let message = format!("no user of this site is below {}", prefix.get_ref());
            let remedy = "write an address below a route with via = \"local\": who is below no \
                          [[clearance]] is not restricted";
            problems.warning(prefix.span(), message, "it restricts nobody", remedy);
        }
        users.push((prefix.into_inner(), labels));
    }
    users
}
