//! The configuration file of a site: only keys that differ from the daemon's defaults.

use anyhow::{Context, Result, bail};
use serde::Serialize;
use std::net::SocketAddr;
use toml::{Table, Value};
use toml_path::set;

/// When the associations of a link are open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionPolicy {
    /// Always.
    Permanent,
    /// While there is something to send, and for this long after, as in `"300s"`.
    OnDemand(String),
}

/// The configuration of a peer, the same at both sites. The defaults are the daemon's.
#[derive(Clone, Debug)]
pub struct PeerSettings {
    /// Octets between checkpoints, a multiple of 1,024; 0 for none.
    pub checkpoint: u64,
    /// Unconfirmed checkpoints.
    pub window: u32,
    /// One-way associations instead of turns.
    pub monologue: bool,
    /// Send indefinite lengths.
    pub indefinite: bool,
    /// Octets of a TPDU; the largest size of the standard if absent.
    pub tpdu_size: Option<u32>,
    /// Credentials as OCTET STRING instead of IA5String.
    pub octet_credentials: bool,
    /// Extension fields of 1988.
    pub dialect_1988: bool,
    /// X.410 (1984) mode, with P1 of 1988.
    pub x410: bool,
    /// The connection policy: permanent or on demand.
    pub connection: ConnectionPolicy,
    /// Longest wait for a confirm, as in `"120s"`.
    pub transfer_timeout: Option<String>,
    /// Further timeouts, as in `("unacknowledged", "3s")`.
    pub timeouts: Vec<(&'static str, &'static str)>,
    /// The largest number of associations of a channel, and how many messages of equal precedence
    /// must wait before it opens a further one; the daemon's defaults if absent.
    pub associations: Option<(u32, u32)>,
    /// The channels, each with its precedences.
    pub channels: Vec<(&'static str, &'static [&'static str])>,
}

/// One channel for all six precedences.
const ONE_FOR_ALL: (&str, &[&str]) =
    ("all", &["deferred", "routine", "priority", "immediate", "flash", "override"]);

impl Default for PeerSettings {
    fn default() -> PeerSettings {
        PeerSettings {
            checkpoint: 65_536,
            window: 16,
            monologue: false,
            indefinite: false,
            tpdu_size: None,
            octet_credentials: false,
            dialect_1988: false,
            x410: false,
            connection: ConnectionPolicy::Permanent,
            transfer_timeout: None,
            timeouts: Vec::new(),
            associations: None,
            channels: vec![ONE_FOR_ALL],
        }
    }
}

impl PeerSettings {
    /// One channel for each precedence, Routine and Deferred sharing one, as in the files of
    /// `config/sites`.
    pub fn per_precedence() -> PeerSettings {
        PeerSettings {
            channels: vec![
                ("routine", &["deferred", "routine"]),
                ("priority", &["priority"]),
                ("immediate", &["immediate"]),
                ("flash", &["flash"]),
                ("override", &["override"]),
            ],
            ..PeerSettings::default()
        }
    }

    /// Associations that traffic opens, and that close this long after it.
    pub fn on_demand(mut self, idle_close: &str) -> PeerSettings {
        self.connection = ConnectionPolicy::OnDemand(idle_close.to_owned());
        self
    }
}

/// The addresses of one channel of a peer.
#[derive(Clone, Debug)]
pub struct ChannelAddresses {
    /// The address and port that the site connects to.
    pub remote: SocketAddr,
    /// Where the site listens for the peer.
    pub listen: Vec<SocketAddr>,
}

/// The configuration of a peer at one site.
#[derive(Clone, Debug)]
pub struct PeerConfig {
    /// The name of the peer's site.
    pub name: String,
    /// What both sites know of each other.
    pub link: PeerSettings,
    /// One for each channel of the link.
    pub ends: Vec<ChannelAddresses>,
}

#[derive(Serialize)]
struct PeerTable<'a> {
    name: &'a str,
    mta_name: String,
    password: SecretTable,
    expect: SecretTable,
    credentials: &'static str,
    extensions: &'static str,
    mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tpdu_size: Option<u32>,
    channel: Vec<ChannelTable<'a>>,
}

#[derive(Serialize)]
struct SecretTable {
    file: String,
}

#[derive(Serialize)]
struct ChannelTable<'a> {
    name: &'a str,
    precedences: &'a [&'a str],
    remote: SocketAddr,
    listen: &'a [SocketAddr],
    connection: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    idle_close: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    associations: Option<AssociationLimits>,
    rts: RtsTable,
    #[serde(skip_serializing_if = "Table::is_empty")]
    timeouts: Table,
}

#[derive(Clone, Copy, Serialize)]
struct AssociationLimits {
    max: u32,
    grow_at: u32,
}

#[derive(Serialize)]
struct RtsTable {
    checkpoint: u64,
    window: u32,
    dialogue: &'static str,
    indefinite: bool,
}

/// The name an MTA binds with.
pub fn mta_name(site: &str) -> String {
    format!("MTA-{}", site.to_uppercase())
}

/// The address prefix of a site's users.
pub fn domain(site: &str) -> String {
    format!("/C=IT/ADMD=NET/PRMD={}", site.to_uppercase())
}

/// The file of the password that `from` presents to `to`, relative to the configuration.
pub fn secret_file(from: &str, to: &str) -> String {
    format!("secrets/{from}-to-{to}")
}

/// The configuration file of a site without peers.
pub fn site(name: &str, p3: SocketAddr) -> Result<Table> {
    let mut table = Table::new();
    set(&mut table, "mta.name", mta_name(name))?;
    set(&mut table, "mta.country", "IT")?;
    set(&mut table, "mta.admd", "NET")?;
    set(&mut table, "mta.prmd", name.to_uppercase())?;
    set(&mut table, "mta.data_dir", "data")?;
    set(&mut table, "p3.listen", p3.to_string())?;
    route(&mut table, &domain(name), "local")?;
    Ok(table)
}

/// Adds a peer and the route to it.
pub(crate) fn add_peer(table: &mut Table, own: &str, peer: &PeerConfig) -> Result<()> {
    let link = &peer.link;
    let (connection, idle_close) = match &link.connection {
        ConnectionPolicy::Permanent => ("permanent", None),
        ConnectionPolicy::OnDemand(idle) => ("on-demand", Some(idle.as_str())),
    };
    let mut timeouts = Table::new();
    if let Some(limit) = &link.transfer_timeout {
        timeouts.insert("transfer".to_owned(), Value::from(limit.as_str()));
    }
    for (name, limit) in &link.timeouts {
        timeouts.insert((*name).to_owned(), Value::from(*limit));
    }
    let pairs = link.channels.iter().zip(&peer.ends);
    let channels = pairs.map(|((name, precedences), ends)| ChannelTable {
        name,
        precedences,
        remote: ends.remote,
        listen: &ends.listen,
        connection,
        idle_close,
        associations: link.associations.map(|(max, grow_at)| AssociationLimits { max, grow_at }),
        rts: RtsTable {
            checkpoint: link.checkpoint,
            window: link.window,
            dialogue: if link.monologue { "monologue" } else { "two-way-alternate" },
            indefinite: link.indefinite,
        },
        timeouts: timeouts.clone(),
    });
    let written = PeerTable {
        name: &peer.name,
        mta_name: mta_name(&peer.name),
        password: SecretTable { file: secret_file(own, &peer.name) },
        expect: SecretTable { file: secret_file(&peer.name, own) },
        credentials: if link.octet_credentials { "octet" } else { "ia5" },
        extensions: if link.dialect_1988 { "1988" } else { "modern" },
        mode: if link.x410 { "x410-1984" } else { "normal" },
        tpdu_size: link.tpdu_size,
        channel: channels.collect(),
    };
    push(table, "peer", Value::try_from(written).context("a peer as TOML")?)?;
    route(table, &domain(&peer.name), &peer.name)
}

fn route(table: &mut Table, address: &str, via: &str) -> Result<()> {
    let mut route = Table::new();
    route.insert("address".to_owned(), Value::from(address));
    route.insert("via".to_owned(), Value::from(via));
    push(table, "route", Value::Table(route))
}

fn push(table: &mut Table, key: &str, value: Value) -> Result<()> {
    let list = table.entry(key).or_insert_with(|| Value::Array(Vec::new()));
    match list.as_array_mut() {
        Some(list) => list.push(value),
        None => bail!("{key} is not a list of tables"),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_has_the_keys_that_were_set_and_no_secret() {
        let at = |port| SocketAddr::from(([127, 64, 0, 1], port));
        let mut table = site("naples", at(5010)).unwrap();
        let link = PeerSettings {
            checkpoint: 0,
            octet_credentials: true,
            associations: Some((4, 1)),
            ..PeerSettings::default()
        };
        let link = link.on_demand("2s");
        let ends = vec![ChannelAddresses { remote: at(1), listen: vec![at(2)] }];
        let peer = PeerConfig { name: "act".to_owned(), link, ends };
        add_peer(&mut table, "naples", &peer).unwrap();
        set(&mut table, "limits.content", "1GB").unwrap();
        let text = toml::to_string(&table).unwrap();
        for line in [
            "name = \"MTA-NAPLES\"",
            "address = \"/C=IT/ADMD=NET/PRMD=ACT\"",
            "credentials = \"octet\"",
            "file = \"secrets/naples-to-act\"",
            "idle_close = \"2s\"",
            "remote = \"127.64.0.1:1\"",
            "listen = [\"127.64.0.1:2\"]",
            "checkpoint = 0",
            "max = 4",
            "grow_at = 1",
            "content = \"1GB\"",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
        assert!(!text.contains("tpdu_size"), "an absent key has the daemon's default");
    }
}
