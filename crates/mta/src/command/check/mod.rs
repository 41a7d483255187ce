//! `mta check`: reports every error of a configuration file, or shows what would run.

mod keys;

use super::output::{print, print_advice, print_error, print_findings, print_json, table, trimmed};
use super::{DONE, WRONG, cluster};
use crate::advice::{self, Advice, Facts};
use crate::config::problem::ProblemJson;
use crate::config::section::store::engine::StoreEngine;
use crate::config::{self, Site, Tcp};
use base::{PeerId, Precedence};
use disk_room::data_dir;
use node::ChannelId;
use node::config::{Connection, ListenerService, Target};
use serde::Serialize;
use site_view::{DatabaseFault, Examined};
use std::path::PathBuf;

/// Checks a configuration file and shows what would run. A database that it names is asked too.
///
/// Exit codes: 0 `mta run` would start, 2 wrong usage or configuration, 4 the database is away, 5 a node would not start
/// with it.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The configuration file.
    #[arg(long, value_name = "FILE", env = "MTA_CONFIG")]
    config: PathBuf,
    /// Show each key of this peer and of its channels instead: its value, and whether it comes from the peer, the
    /// channel, the profile or the program.
    #[arg(long, value_name = "PEER")]
    show: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> u8 {
    let (site, report) = match config::load(&arguments.config, &data_dir::unfit) {
        Ok(loaded) => loaded,
        Err(error) => {
            print_error(&error.to_string());
            return WRONG;
        }
    };
    if let (Some(peer), Some(_)) = (&arguments.show, &site) {
        print_findings(&report);
        return keys::show(&arguments.config, peer, arguments.json);
    }
    let plan = site.as_ref().map(Plan::from_site);
    let advice = |give: fn(&Site, &Facts) -> Vec<Advice>| {
        site.as_ref().map(|site| give(site, &Facts::read())).unwrap_or_default()
    };
    if arguments.json {
        let advice = advice(advice::give);
        let ok = code(plan.as_ref()) == DONE;
        print_json(&Checked { ok, problems: report.to_json(), advice, plan: plan.as_ref() });
    } else {
        print_findings(&report);
        for advice in advice(advice::give_once) {
            print_advice(&advice.to_string());
        }
        if let Some(plan) = &plan {
            print(&plan.to_text());
            if let Some(error) = plan.database.as_ref().and_then(|database| database.error.as_ref())
            {
                print_error(error);
            }
        }
    }
    code(plan.as_ref())
}

/// The exit code.
fn code(plan: Option<&Plan>) -> u8 {
    let Some(plan) = plan else { return WRONG };
    match &plan.database {
        Some(PlannedDatabase { fault: Some(DatabaseFault::Away), .. }) => cluster::AWAY,
        Some(PlannedDatabase { error: Some(_), .. }) => cluster::UNUSABLE,
        _ => DONE,
    }
}

/// The answer in JSON.
#[derive(Serialize)]
struct Checked<'a> {
    ok: bool,
    problems: Vec<ProblemJson>,
    /// Findings that do not prevent the daemon from starting.
    advice: Vec<Advice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<&'a Plan>,
}

/// The configuration that the daemon would run.
#[derive(Serialize)]
struct Plan {
    mta: String,
    data_dir: PathBuf,
    /// Who gets what is for addresses of this site that are nobody's.
    #[serde(skip_serializing_if = "Option::is_none")]
    alternate_recipient: Option<String>,
    channels: Vec<PlannedChannel>,
    p3: Vec<PlannedListener>,
    p7: Vec<PlannedListener>,
    routes: Vec<PlannedRoute>,
    /// The database that has the queue, and the node of its site.
    #[serde(skip_serializing_if = "Option::is_none")]
    database: Option<PlannedDatabase>,
}

#[derive(Serialize)]
struct PlannedDatabase {
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_seconds: Option<f64>,
    /// What it promises, in sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    durability: Vec<String>,
    /// Why a node would not start with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// What kind of an error that is.
    #[serde(skip)]
    fault: Option<DatabaseFault>,
}

impl PlannedDatabase {
    /// Asks the database of a site, where it has one.
    fn from_site(site: &Site) -> Option<PlannedDatabase> {
        let StoreEngine::Postgres(database) = &site.engine else { return None };
        let Examined { promises: durability, error, fault } = cluster::examine(site, database);
        let node = database.node.as_ref();
        Some(PlannedDatabase {
            node: node.map(|node| node.name.clone()),
            lease_seconds: node.map(|node| node.lease.as_secs_f64()),
            durability,
            error,
            fault,
        })
    }

    fn to_text(&self) -> String {
        let mut text = match (&self.node, self.lease_seconds) {
            (Some(node), Some(lease)) => {
                format!("\nnode {node} of a site, with a lease of {lease} s\n")
            }
            _ => {
                "\nalone on its database: without [cluster] no other node may share it\n".to_owned()
            }
        };
        for sentence in &self.durability {
            text.push_str(&format!("the database: {sentence}\n"));
        }
        text
    }
}

#[derive(Serialize)]
struct PlannedChannel {
    peer: String,
    channel: String,
    precedences: Vec<Precedence>,
    dscp: u8,
    dscp_name: String,
    remote: String,
    listen: Vec<String>,
    connection: &'static str,
    associations_max: u32,
    checkpoint: u64,
    window: u32,
}

#[derive(Serialize)]
struct PlannedListener {
    listen: String,
    dscp: u8,
    dscp_name: String,
}

#[derive(Serialize)]
struct PlannedRoute {
    address: String,
    via: String,
}

fn marks(tcp: &Tcp) -> (u8, String) {
    (tcp.dscp.number(), tcp.dscp.to_string())
}

impl Plan {
    fn from_site(site: &Site) -> Plan {
        let listens = |wanted: ChannelId| -> Vec<String> {
            let is_it = |service: &ListenerService| match service {
                ListenerService::P1 { peer, channel } => {
                    wanted == ChannelId { peer: *peer, index: *channel }
                }
                ListenerService::P3 { .. } | ListenerService::P7 { .. } => false,
            };
            let its = site.node.listeners.iter().filter(|l| is_it(&l.service));
            its.filter_map(|l| site.listener(l.id)).map(|s| s.address.to_string()).collect()
        };
        let mut channels = Vec::new();
        let peers = site.node.peers.iter();
        let all = peers.flat_map(|peer| peer.channels().map(move |(id, c)| (peer, id, c)));
        for (peer, id, channel) in all {
            let Some(socket) = site.channels.get(&id) else { continue };
            let (dscp, dscp_name) = marks(&socket.tcp);
            channels.push(PlannedChannel {
                peer: peer.name.clone(),
                channel: channel.name.clone(),
                precedences: channel.precedences.clone(),
                dscp,
                dscp_name,
                remote: socket.remotes().map(ToString::to_string).collect::<Vec<_>>().join(" "),
                listen: listens(id),
                connection: match &channel.connection {
                    Connection::Permanent => "permanent",
                    Connection::OnDemand { .. } => "on-demand",
                    Connection::Scheduled { .. } => "scheduled",
                },
                associations_max: channel.associations_max,
                checkpoint: u64::from(channel.rts.checkpoint_size) * 1_024,
                window: channel.rts.window,
            });
        }
        let listeners = site.node.listeners.iter();
        let (p3, p7): (Vec<_>, Vec<_>) = listeners
            .filter(|l| !matches!(l.service, ListenerService::P1 { .. }))
            .partition(|l| matches!(l.service, ListenerService::P3 { .. }));
        let planned = |listeners: Vec<&node::config::Listener>| -> Vec<PlannedListener> {
            let sockets = listeners.into_iter().filter_map(|listener| site.listener(listener.id));
            let listener = |socket: &crate::config::ListenSocket| {
                let (dscp, dscp_name) = marks(&socket.tcp);
                PlannedListener { listen: socket.address.to_string(), dscp, dscp_name }
            };
            sockets.map(listener).collect()
        };
        let name = |peer: PeerId| site.node.peer(peer).map_or_else(String::new, |p| p.name.clone());
        let alternate = site.node.alternate_recipient.as_ref();
        Plan {
            mta: site.node.mta.0.clone(),
            data_dir: site.paths.data_dir.clone(),
            database: PlannedDatabase::from_site(site),
            alternate_recipient: alternate.map(|name| name.address.to_string()),
            channels,
            p3: planned(p3),
            p7: planned(p7),
            routes: site
                .node
                .routes
                .iter()
                .map(|route| PlannedRoute {
                    address: route.prefix.to_string(),
                    via: match route.to {
                        Target::Local => "local".to_owned(),
                        Target::Peer(peer) => name(peer),
                    },
                })
                .collect(),
        }
    }

    fn to_text(&self) -> String {
        let mut text = format!("{}, data in {}\n\n", self.mta, self.data_dir.display());
        let mut channels = table([
            "PEER",
            "CHANNEL",
            "PRECEDENCES",
            "DSCP",
            "CONNECTS TO",
            "LISTENS ON",
            "CONNECTION",
        ]);
        for c in &self.channels {
            let precedences: Vec<&str> = c.precedences.iter().map(|p| p.name()).collect();
            channels.add_row([
                c.peer.clone(),
                c.channel.clone(),
                precedences.join(" "),
                c.dscp_name.clone(),
                c.remote.clone(),
                if c.listen.is_empty() { "-".to_owned() } else { c.listen.join(" ") },
                c.connection.to_owned(),
            ]);
        }
        for p3 in &self.p3 {
            let cells = ["(users)", "p3", "all", &p3.dscp_name, "-", &p3.listen, "-"];
            channels.add_row(cells);
        }
        for p7 in &self.p7 {
            let cells = ["(users)", "p7", "all", &p7.dscp_name, "-", &p7.listen, "-"];
            channels.add_row(cells);
        }
        text.push_str(&trimmed(&channels));
        text.push('\n');
        let mut routes = table(["ADDRESS", "VIA"]);
        for route in &self.routes {
            routes.add_row([&route.address, &route.via]);
        }
        text.push_str(&trimmed(&routes));
        if let Some(database) = &self.database {
            text.push_str(&database.to_text());
        }
        if let Some(alternate) = &self.alternate_recipient {
            text.push_str(&format!(
                "\nMessages for addresses here that are nobody's go to {alternate}, if their originators\n\
                 allow an alternate recipient.\n"
            ));
        }
        text
    }
}
