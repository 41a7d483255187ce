//! The configuration file of a site: what differs from the daemon's defaults, and nothing else.

use anyhow::{Context, Result, bail};
use serde::Serialize;
use std::net::SocketAddr;
use toml::{Table, Value};
use toml_path::set;

/// When the associations of a link are open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Connection {
    /// Always.
    Permanent,
    /// While there is something to send, and this long after, as in `"300s"`.
    OnDemand(String),
}

/// How two sites talk to each other. The defaults are the daemon's.
#[derive(Clone, Debug)]
pub struct Link {
    /// Octets between checkpoints, a multiple of 1,024; 0 for none.
    pub checkpoint: u64,
    /// Unconfirmed checkpoints.
    pub window: u32,
    /// One-way associations instead of turns.
    pub monologue: bool,
    /// Send indefinite lengths.
    pub indefinite: bool,
    /// Octets of a TPDU; the standard's most if absent.
    pub tpdu_size: Option<u32>,
    /// Credentials as OCTET STRING instead of IA5String.
    pub octet_credentials: bool,
    /// Extension fields of 1988.
    pub dialect_1988: bool,
    /// When associations are open.
    pub connection: Connection,
    /// Longest wait for a confirm, as in `"120s"`.
    pub transfer_timeout: Option<String>,
    /// Further timeouts, as in `("unacknowledged", "3s")`.
    pub timeouts: Vec<(&'static str, &'static str)>,
    /// Most associations of a channel, and how many messages of equal precedence must wait for a
    /// further one; the daemon's defaults if absent.
    pub associations: Option<(u32, u32)>,
    /// The channels and who may use them.
    pub channels: Vec<(&'static str, &'static [&'static str])>,
}

/// One channel for all six precedences.
const ONE_FOR_ALL: (&str, &[&str]) =
    ("all", &["deferred", "routine", "priority", "immediate", "flash", "override"]);

impl Default for Link {
    fn default() -> Link {
        Link {
            checkpoint: 65_536,
            window: 16,
            monologue: false,
            indefinite: false,
            tpdu_size: None,
            octet_credentials: false,
            dialect_1988: false,
            connection: Connection::Permanent,
            transfer_timeout: None,
            timeouts: Vec::new(),
            associations: None,
            channels: vec![ONE_FOR_ALL],
        }
    }
}

impl Link {
    /// One channel for each precedence, Routine and Deferred sharing one, as in the files of
    /// `config/sites`.
    pub fn per_precedence() -> Link {
        Link {
            channels: vec![
                ("routine", &["deferred", "routine"]),
                ("priority", &["priority"]),
                ("immediate", &["immediate"]),
                ("flash", &["flash"]),
                ("override", &["override"]),
            ],
            ..Link::default()
        }
    }

    /// Opened by traffic, closed so long after it.
    pub fn on_demand(mut self, idle_close: &str) -> Link {
        self.connection = Connection::OnDemand(idle_close.to_owned());
        self
    }
}

/// The addresses of one channel, as a site sees it.
#[derive(Clone, Debug)]
pub(crate) struct Ends {
    /// Where we connect.
    pub(crate) remote: SocketAddr,
    /// Where the peer connects.
    pub(crate) listen: Vec<SocketAddr>,
}

/// A peer, as a site sees it.
#[derive(Clone, Debug)]
pub(crate) struct PeerOf {
    pub(crate) name: String,
    pub(crate) link: Link,
    /// One for each channel of the link.
    pub(crate) ends: Vec<Ends>,
}

#[derive(Serialize)]
struct Peer<'a> {
    name: &'a str,
    mta_name: String,
    password: Secret,
    expect: Secret,
    credentials: &'static str,
    extensions: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tpdu_size: Option<u32>,
    channel: Vec<Channel<'a>>,
}

#[derive(Serialize)]
struct Secret {
    file: String,
}

#[derive(Serialize)]
struct Channel<'a> {
    name: &'a str,
    precedences: &'a [&'a str],
    remote: SocketAddr,
    listen: &'a [SocketAddr],
    connection: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    idle_close: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    associations: Option<Associations>,
    rts: Rts,
    #[serde(skip_serializing_if = "Table::is_empty")]
    timeouts: Table,
}

#[derive(Clone, Copy, Serialize)]
struct Associations {
    max: u32,
    grow_at: u32,
}

#[derive(Serialize)]
struct Rts {
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

/// The file's content for a site without peers.
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
pub(crate) fn add_peer(table: &mut Table, own: &str, peer: &PeerOf) -> Result<()> {
    let link = &peer.link;
    let (connection, idle_close) = match &link.connection {
        Connection::Permanent => ("permanent", None),
        Connection::OnDemand(idle) => ("on-demand", Some(idle.as_str())),
    };
    let mut timeouts = Table::new();
    if let Some(limit) = &link.transfer_timeout {
        timeouts.insert("transfer".to_owned(), Value::from(limit.as_str()));
    }
    for (name, limit) in &link.timeouts {
        timeouts.insert((*name).to_owned(), Value::from(*limit));
    }
    let pairs = link.channels.iter().zip(&peer.ends);
    let channels = pairs.map(|((name, precedences), ends)| Channel {
        name,
        precedences,
        remote: ends.remote,
        listen: &ends.listen,
        connection,
        idle_close,
        associations: link.associations.map(|(max, grow_at)| Associations { max, grow_at }),
        rts: Rts {
            checkpoint: link.checkpoint,
            window: link.window,
            dialogue: if link.monologue { "monologue" } else { "two-way-alternate" },
            indefinite: link.indefinite,
        },
        timeouts: timeouts.clone(),
    });
    let written = Peer {
        name: &peer.name,
        mta_name: mta_name(&peer.name),
        password: Secret { file: secret_file(own, &peer.name) },
        expect: Secret { file: secret_file(&peer.name, own) },
        credentials: if link.octet_credentials { "octet" } else { "ia5" },
        extensions: if link.dialect_1988 { "1988" } else { "modern" },
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
        None => bail!("{key} is no list of tables"),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_says_what_was_asked_for_and_no_secret() {
        let at = |port| SocketAddr::from(([127, 64, 0, 1], port));
        let mut table = site("naples", at(5010)).unwrap();
        let link = Link {
            checkpoint: 0,
            octet_credentials: true,
            associations: Some((4, 1)),
            ..Link::default()
        };
        let link = link.on_demand("2s");
        let ends = vec![Ends { remote: at(1), listen: vec![at(2)] }];
        let peer = PeerOf { name: "act".to_owned(), link, ends };
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
        assert!(!text.contains("tpdu_size"), "what is not given is the daemon's default");
    }
}
