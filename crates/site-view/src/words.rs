//! What a report comes to, in sentences.

use crate::fault::DatabaseFault;
use crate::report::{IfDied, Own, ServerReport, SiteReport};
use postgres_store::{FaultKind, ServerFault, ServerState, Survey};
use std::time::Duration;
use store::StoreError;

/// Commits that wait for their standbys for longer are a trouble.
pub(crate) const WAITING: Duration = Duration::from_secs(2);

/// Names in a sentence, of many only the first.
fn names(all: &[String]) -> String {
    const MOST: usize = 5;
    let shown = all.iter().take(MOST).cloned().collect::<Vec<_>>().join(", ");
    match all.len() {
        more if more > MOST => format!("{shown} and {} more", more - MOST),
        _ => shown,
    }
}

/// What would happen if a node died.
pub(crate) fn of_death(died: &IfDied) -> String {
    let node = &died.node;
    if died.taken.is_empty() && died.left.is_empty() {
        return format!("If {node} died now: nothing would move, it has no shard");
    }
    let seconds = died.within_seconds;
    let mut parts: Vec<String> = died
        .taken
        .iter()
        .map(|(taker, shards)| {
            format!("{taker} would have {} after about {seconds} s", names(shards))
        })
        .collect();
    if !died.left.is_empty() {
        parts.push(format!("nobody would take {}: no other node lives", names(&died.left)));
    }
    let wait = match died.queued {
        0 => "nothing waits there now".to_owned(),
        1 => "1 entry would wait until then".to_owned(),
        count => format!("{count} entries would wait until then"),
    };
    parts.push(wait);
    format!(
        "If {node} died now: {}. Transfers in doubt are repeated: peers that know duplicates drop them",
        parts.join("; ")
    )
}

/// What is not as it is to be.
pub(crate) fn troubles(
    own: &Own,
    survey: &Survey,
    report: &SiteReport,
    servers: usize,
) -> Vec<String> {
    let mut all: Vec<String> = of_primaries(&report.servers).into_iter().collect();
    of_nodes(own, report, &mut all);
    of_shards(own, report, &mut all);
    if survey.waiting > 0 && survey.waits >= WAITING {
        let count = if survey.waiting == 1 {
            "1 commit waits".to_owned()
        } else {
            format!("{} commits wait", survey.waiting)
        };
        all.push(format!(
            "{count} for standbys, the first for {:.1} s: nothing is acknowledged until one has them",
            survey.waits.as_secs_f64()
        ));
    }
    // Without standbys by choice it is not a trouble.
    let durability = survey.settings.durability();
    let is_empty = survey.settings.synchronous_standby_names.trim().is_empty();
    let (sound, warned) = (&survey.settings, &durability.warnings);
    if !is_empty || servers > 1 || !sound.fsync || !sound.full_page_writes {
        all.extend(warned.iter().map(|warning| format!("the database: {warning}")));
    }
    let gone = report.servers.iter().filter(|server| server.error.is_some());
    all.extend(gone.filter_map(|server| {
        let (address, why) = (server.address.as_ref()?, server.error.as_ref()?);
        Some(format!("the server {address}, {}: {why}", server.state))
    }));
    all
}

/// Two servers that write: a promotion beside a primary that lives.
fn of_primaries(servers: &[ServerReport]) -> Option<String> {
    let primaries = servers.iter().filter(|server| server.role == "primary");
    let addresses: Vec<String> = primaries.filter_map(|server| server.address.clone()).collect();
    (addresses.len() > 1).then(|| {
        format!(
            "two primaries answer, {}: stop the one that was not promoted, whose `select timeline_id from \
             pg_control_checkpoint()` is the lower one; nodes that are connected to it go to the other",
            addresses.join(" and ")
        )
    })
}

fn of_nodes(own: &Own, report: &SiteReport, all: &mut Vec<String>) {
    for node in &report.nodes {
        let name = &node.name;
        match node.state {
            "dead" => all.push(format!(
                "node {name} has no lease since {}: start it, see whether it reaches the database, or `mta cluster \
                 forget {name}` if it has gone for good",
                node.lease_ended.as_deref().unwrap_or("?")
            )),
            "lease_over" => all.push(format!("the lease of node {name} is over: it takes nothing")),
            "draining" | "drained" => {
                all.push(format!("node {name} is {}: it takes no shard", node.state));
            }
            _ => {}
        }
    }
    let own_is_known = |name: &String| report.nodes.iter().any(|node| node.name == *name);
    if let Some(name) = own.node.as_ref().filter(|name| !own_is_known(name)) {
        all.push(format!("node {name} has not joined yet"));
    }
    let able = report.nodes.iter().filter(|node| node.state == "lives").count();
    match able {
        0 => all.push("no node takes shards: nothing is sent".to_owned()),
        1 => all.push("one node takes shards: nobody would have them if it died".to_owned()),
        _ => {}
    }
}

fn of_shards(own: &Own, report: &SiteReport, all: &mut Vec<String>) {
    let long = (own.lease * 2).as_secs_f64();
    let is_free = |since: Option<f64>| since.is_none_or(|since| since > long);
    let free = report.shards.iter().filter(|shard| {
        // A mailbox for which nothing waits is nobody's until somebody binds.
        shard.owner.is_none()
            && is_free(shard.since_seconds)
            && (shard.kind == "peer" || !shard.queued.is_empty())
    });
    let free: Vec<String> = free.map(|shard| shard.name.clone()).collect();
    if !free.is_empty() {
        all.push(format!("nobody has {} for more than two leases", names(&free)));
    }
}

/// What is wrong where the database could not be looked at, and what is to be done about it.
pub(crate) fn of_unseen(why: &StoreError, asked: &[ServerState]) -> Vec<String> {
    let mut all = vec![why.to_string()];
    // Each with its own reason: an error of several servers has that of one.
    for server in asked.iter().filter(|_| asked.len() > 1) {
        if let Err(fault) = &server.answer {
            all.push(format!("the server {}: {}", server.host, fault.why));
        }
    }
    match DatabaseFault::from_error(why) {
        DatabaseFault::Away => {}
        DatabaseFault::Refused => {
            all.push(
                "a node with this configuration does not start; no standby is to be promoted for it: a server that \
                 runs may be the primary"
                    .into(),
            );
            return all;
        }
        DatabaseFault::NotPrepared => {
            all.push(
                "a node of this release does not start; no standby is to be promoted for it".into(),
            );
            return all;
        }
    }
    let answers = || asked.iter().filter_map(|server| Some((server, server.answer.as_ref().ok()?)));
    let standbys: Vec<_> = answers().filter(|(_, answer)| answer.is_standby).collect();
    let has_primary = answers().any(|(_, answer)| !answer.is_standby);
    // Not away at all, as far as is known: promoting beside one of these makes two primaries.
    let may_run = |fault: &ServerFault| fault.kind.is_there() || fault.kind == FaultKind::NoAddress;
    let doubtful = asked.iter().find(|server| server.answer.as_ref().is_err_and(may_run));
    if has_primary {
        all.push("a primary answers: look again, it was away for a moment only".to_owned());
    } else if let Some(server) = doubtful {
        all.push(format!(
            "{} may be the primary, and run: mend what is wrong there, and promote no standby before you know",
            server.host
        ));
    } else if let Some((most, _)) = standbys.iter().max_by_key(|(_, answer)| answer.has) {
        all.push(format!(
            "{} standbys answer, and no primary: if the primary is lost, promote the one that has most ({}) with \
             promote.sh (docs/cluster.md)",
            standbys.len(),
            most.host
        ));
    }
    all.push("until the database answers, no node takes or sends anything".to_owned());
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use postgres_store::ServerAnswer;

    fn servers() -> Vec<ServerState> {
        let standby = |host: &str, has| ServerState {
            host: host.to_owned(),
            answer: Ok(ServerAnswer { is_standby: true, name: None, has }),
        };
        let gone = ServerState {
            host: "db0:5432".to_owned(),
            answer: Err(ServerFault { kind: FaultKind::Away, why: "refused".to_owned() }),
        };
        vec![gone, standby("db1:5432", 70), standby("db2:5432", 90)]
    }

    #[test]
    fn two_primaries_are_named() {
        let server = |address: &str, role| ServerReport {
            address: Some(address.to_owned()),
            role,
            ..ServerReport::default()
        };
        let mut all = vec![server("db0:5432", "primary"), server("db1:5432", "standby")];
        assert_eq!(of_primaries(&all), None);
        all.push(server("db2:5432", "primary"));
        assert!(of_primaries(&all).is_some_and(|text| text.contains("db0:5432 and db2:5432")));
    }

    #[test]
    fn a_standby_is_to_be_promoted_only_where_no_primary_answers() {
        let (host, doing, reason) = ("db0:5432".to_owned(), "looking", "why".to_owned());
        let promotes =
            |error: &StoreError| of_unseen(error, &servers()).join("\n").contains("promote.sh");
        let away = StoreError::Away { host: host.clone(), doing, reason: reason.clone() };
        assert!(promotes(&away));
        assert!(of_unseen(&away, &servers()).join("\n").contains("has most (db2:5432)"));
        let schema = "mta".to_owned();
        for other in [
            StoreError::Denied { host: host.clone(), doing, reason: reason.clone() },
            StoreError::Untrusted { host: host.clone(), doing, reason: reason.clone() },
            StoreError::Refused { host: host.clone(), doing, reason },
            StoreError::NotPrepared { host, schema, found: 0, needed: 7 },
            StoreError::Newer { found: 9, known: 7 },
        ] {
            assert!(!promotes(&other), "{other}");
        }
        for kind in [FaultKind::Untrusted, FaultKind::Denies, FaultKind::NoAddress, FaultKind::Busy]
        {
            let mut doubtful = servers();
            if let Some(first) = doubtful.first_mut() {
                first.answer = Err(ServerFault { kind, why: "expired".to_owned() });
            }
            let text = of_unseen(&away, &doubtful).join("\n");
            assert!(!text.contains("promote.sh") && text.contains("db0:5432: expired"), "{text}");
        }
        let mut back = servers();
        if let Some(first) = back.first_mut() {
            first.answer = Ok(ServerAnswer::default());
        }
        assert!(!of_unseen(&away, &back).join("\n").contains("promote.sh"));
    }
}
