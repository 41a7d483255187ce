//! The servers of the database: those that the url names, and those that follow the primary.

use crate::report::ServerReport;
use postgres_store::{FaultKind, ServerAnswer, ServerFault, ServerState, StandbyRow, Survey};

/// All servers: the primary first.
pub(crate) fn servers(survey: &Survey, asked: &[ServerState]) -> Vec<ServerReport> {
    let (_, waited) = survey.settings.waited_for();
    let is_waited = |name: &str| waited.iter().any(|w| w == "*" || w.eq_ignore_ascii_case(name));
    let mut rows = survey.standbys.clone();
    let mut all = Vec::new();
    for server in asked {
        all.push(match &server.answer {
            Ok(answer) if answer.is_standby => standby(server, answer, &mut rows, &is_waited),
            Ok(_) => ServerReport {
                address: Some(server.host.clone()),
                role: "primary",
                state: "writes".to_owned(),
                ..ServerReport::default()
            },
            Err(why) => unreached(server, why),
        });
    }
    if !all.iter().any(|server| server.role == "primary") {
        all.push(ServerReport {
            address: survey.primary.clone(),
            role: "primary",
            state: "writes".to_owned(),
            ..ServerReport::default()
        });
    }
    all.extend(rows.iter().map(|row| following(row, &is_waited)));
    let named = |name: &String| {
        let has = |server: &ServerReport| {
            server.name.as_ref().is_some_and(|known| known.eq_ignore_ascii_case(name))
        };
        name != "*" && !all.iter().any(has)
    };
    let missing: Vec<ServerReport> =
        waited.iter().filter(|name| named(name)).map(|name| not_connected(name)).collect();
    all.extend(missing);
    all.sort_by_key(|server| (server.role != "primary", server.role, server.name.clone()));
    all
}

/// What the servers answer, where no primary could be looked at.
pub(crate) fn unseen(asked: &[ServerState]) -> Vec<ServerReport> {
    let one = |server: &ServerState| match &server.answer {
        Ok(answer) => ServerReport {
            address: Some(server.host.clone()),
            name: answer.name.clone(),
            role: if answer.is_standby { "standby" } else { "primary" },
            state: match answer.is_standby {
                true => format!("has the log up to {}", answer.has),
                false => "writes".to_owned(),
            },
            ..ServerReport::default()
        },
        Err(why) => unreached(server, why),
    };
    asked.iter().map(one).collect()
}

fn unreached(server: &ServerState, fault: &ServerFault) -> ServerReport {
    ServerReport {
        address: Some(server.host.clone()),
        role: "unknown",
        state: match fault.kind {
            FaultKind::Away => "away",
            FaultKind::NoAddress => "name unknown",
            FaultKind::Denies => "does not let us in",
            FaultKind::Untrusted => "TLS fails",
            FaultKind::Busy => "takes no connection",
        }
        .to_owned(),
        error: Some(fault.why.clone()),
        ..ServerReport::default()
    }
}

fn not_connected(name: &str) -> ServerReport {
    ServerReport {
        name: Some(name.to_owned()),
        role: "standby",
        state: "not connected".to_owned(),
        ..ServerReport::default()
    }
}

/// A standby of the url, with what the primary knows of it.
fn standby(
    server: &ServerState,
    answer: &ServerAnswer,
    rows: &mut Vec<StandbyRow>,
    is_waited: &impl Fn(&str) -> bool,
) -> ServerReport {
    let of_name = |row: &StandbyRow| answer.name.as_ref() == Some(&row.name);
    match rows.iter().position(of_name) {
        Some(at) => {
            let row = rows.remove(at);
            ServerReport { address: Some(server.host.clone()), ..following(&row, is_waited) }
        }
        None => ServerReport {
            address: Some(server.host.clone()),
            name: answer.name.clone(),
            role: "standby",
            state: "does not follow".to_owned(),
            ..ServerReport::default()
        },
    }
}

fn following(row: &StandbyRow, is_waited: &impl Fn(&str) -> bool) -> ServerReport {
    // One that catches up is not asked yet, whatever it is to be.
    let counted = row.state.as_deref().is_none_or(|state| state == "streaming")
        && match row.counted.as_deref() {
            Some(counted) => matches!(counted, "quorum" | "sync"),
            None => is_waited(&row.name),
        };
    ServerReport {
        address: row.address.clone(),
        name: Some(row.name.clone()),
        role: "standby",
        state: row.state.clone().unwrap_or_else(|| "cannot be seen".to_owned()),
        lag_octets: row.lag_octets,
        lag_seconds: row.lag.map(|lag| lag.as_secs_f64()),
        counted,
        error: None,
    }
}
