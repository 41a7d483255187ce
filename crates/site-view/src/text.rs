//! A report as tables and sentences.

use crate::report::{Health, NodeReport, ServerReport, ShardReport, SiteReport};
use base::Precedence;
use std::collections::BTreeMap;
use tables::{age, dash, table, trimmed};

impl SiteReport {
    /// As text for a terminal.
    #[must_use]
    pub fn to_text(&self) -> String {
        let health = match self.health {
            Health::Healthy => "healthy",
            Health::Degraded => "degraded",
            Health::Unusable => "the database cannot be used",
            Health::DatabaseAway => "the database is away",
        };
        let time = self.time.as_ref().map(|time| format!(" at {time}")).unwrap_or_default();
        let mut text = format!("the site of {}{time}: {health}\n", self.mta);
        for trouble in &self.troubles {
            text.push_str(&format!("! {trouble}\n"));
        }
        let parts = [nodes(&self.nodes), shards(&self.shards), servers(&self.servers)];
        for part in parts.iter().filter(|part| !part.is_empty()) {
            text.push('\n');
            text.push_str(part);
        }
        if !self.durability.is_empty() {
            text.push('\n');
        }
        for sentence in &self.durability {
            text.push_str(&format!("The database: {sentence}\n"));
        }
        if !self.if_died.is_empty() {
            text.push('\n');
        }
        for died in &self.if_died {
            text.push_str(&format!("{}\n", died.words));
        }
        text
    }
}

fn nodes(all: &[NodeReport]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut rows = table(["NODE", "EPOCH", "STATE", "LEASE LEFT", "LEASE ENDED"]);
    for node in all {
        rows.add_row([
            format!("{}{}", node.name, if node.this { " *" } else { "" }),
            node.epoch.to_string(),
            node.state.replace('_', " "),
            if node.lease_ended.is_some() { dash() } else { age(node.lease_left_seconds) },
            node.lease_ended.clone().unwrap_or_else(dash),
        ]);
    }
    let this = if all.iter().any(|node| node.this) { "* this node\n" } else { "" };
    trimmed(&rows) + this
}

fn shards(all: &[ShardReport]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut rows = table(["SHARD", "OWNER", "FOR", "FENCE", "QUEUED", "OLDEST", "STORED"]);
    for shard in all {
        let owner = shard.owner.clone().unwrap_or_else(|| "nobody".to_owned());
        let asked = shard.asked_by.as_ref().map(|by| format!(", asked for by {by}"));
        rows.add_row([
            shard.name.clone(),
            owner + &asked.unwrap_or_default(),
            shard.since_seconds.map_or_else(dash, age),
            shard.fence.to_string(),
            queued(&shard.queued),
            shard.oldest_age_seconds.map_or_else(dash, age),
            shard.stored.map_or_else(dash, |stored| stored.to_string()),
        ]);
    }
    trimmed(&rows)
}

/// Waiting entries by precedence, the highest first.
fn queued(queued: &BTreeMap<Precedence, u64>) -> String {
    let shown = queued.iter().rev().filter(|(_, count)| **count > 0);
    let shown: Vec<String> = shown.map(|(level, count)| format!("{count} {level}")).collect();
    if shown.is_empty() { dash() } else { shown.join(", ") }
}

fn servers(all: &[ServerReport]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut rows = table(["SERVER", "ROLE", "NAME", "STATE", "BEHIND", "LAG", "COUNTED"]);
    for server in all {
        let counted = match (server.role, server.counted) {
            ("standby", true) => "yes",
            ("standby", false) => "no",
            _ => "-",
        };
        rows.add_row([
            server.address.clone().unwrap_or_else(dash),
            server.role.to_owned(),
            server.name.clone().unwrap_or_else(dash),
            server.state.clone(),
            server.lag_octets.map_or_else(dash, |octets| format!("{octets} B")),
            server.lag_seconds.map_or_else(dash, |seconds| format!("{seconds:.3} s")),
            counted.to_owned(),
        ]);
    }
    trimmed(&rows)
}
