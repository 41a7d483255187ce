//! The configuration of a study's MTAs, for either environment.

use anyhow::{Context as _, Result, bail};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use study::Planned;
use study::file::{Mail, StudyChannel, StudyLoad};
use testbed::config;
use toml::{Table, Value};

/// The user at each site.
pub(crate) const USER: &str = "OPS";

/// The MTAs of a run.
#[derive(Debug)]
pub(crate) struct Sites<'a> {
    mail: &'a Mail,
    addresses: BTreeMap<&'a str, IpAddr>,
}

impl<'a> Sites<'a> {
    /// None where no messages are sent.
    ///
    /// # Errors
    /// A host has no address.
    pub(crate) fn from_planned(planned: &'a Planned) -> Result<Option<Sites<'a>>> {
        let Some(mail) = &planned.mail else { return Ok(None) };
        let mut addresses = BTreeMap::new();
        for (site, host) in &mail.sites {
            addresses.insert(site.as_str(), address(planned, host)?);
        }
        Ok(Some(Sites { mail, addresses }))
    }

    /// Site, host and address.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&'a str, &'a str, IpAddr)> + '_ {
        self.mail.sites.iter().filter_map(|(site, host)| {
            Some((site.as_str(), host.as_str(), *self.addresses.get(site.as_str())?))
        })
    }

    /// Channels that are opened without traffic.
    pub(crate) fn permanent(&self) -> usize {
        let of = |channel: &StudyChannel| merged(&self.mail.channel, &channel.keys);
        let is =
            |keys: &Table| keys.get("connection").is_none_or(|is| is.as_str() == Some("permanent"));
        self.mail.channels.iter().filter(|channel| is(&of(channel))).count()
    }

    /// Keys of a site's configuration beside those of every site: peers, routes and what the study
    /// sets. `secret` refers to the password that the first site presents to the second.
    pub(crate) fn keys(
        &self,
        own: &str,
        secret: &dyn Fn(&str, &str) -> Table,
    ) -> Result<Vec<(String, Value)>> {
        let address = self.addresses.get(own).context("no such site")?;
        let mut keys: Vec<(String, Value)> = Vec::new();
        flatten("", &self.mail.mta, &mut keys);
        let mut routes = vec![route(own, "local")];
        let mut peers = Vec::new();
        for (peer, remote) in self.addresses.iter().filter(|(peer, _)| **peer != own) {
            routes.push(route(peer, peer));
            let channels = self.mail.channels.iter();
            let channels = channels.map(|channel| self.channel(channel, *address, *remote));
            let mut table = Table::new();
            table.insert("name".to_owned(), (*peer).into());
            table.insert("mta_name".to_owned(), config::mta_name(peer).into());
            table.insert("password".to_owned(), Value::Table(secret(own, peer)));
            table.insert("expect".to_owned(), Value::Table(secret(peer, own)));
            table.insert("channel".to_owned(), Value::Array(channels.collect()));
            peers.push(Value::Table(table));
        }
        keys.push(("route".to_owned(), Value::Array(routes)));
        keys.push(("peer".to_owned(), Value::Array(peers)));
        Ok(keys)
    }

    fn channel(&self, channel: &StudyChannel, own: IpAddr, remote: IpAddr) -> Value {
        let mut table = merged(&self.mail.channel, &channel.keys);
        let names = channel.precedences.iter().map(|precedence| precedence.name().into());
        let mut put = |key: &str, value: Value| table.insert(key.to_owned(), value);
        put("name", channel.name.as_str().into());
        put("precedences", Value::Array(names.collect()));
        put("dscp", channel.dscp.to_string().into());
        put("remote", SocketAddr::new(remote, channel.port).to_string().into());
        put("listen", SocketAddr::new(own, channel.port).to_string().into());
        Value::Table(table)
    }
}

/// The first IPv4 address of a host, else its first one.
///
/// # Errors
/// It has none.
pub(crate) fn address(planned: &Planned, host: &str) -> Result<IpAddr> {
    address_like(planned, host, None)
}

/// The first address of a host of the family of another one.
fn address_like(planned: &Planned, host: &str, other: Option<IpAddr>) -> Result<IpAddr> {
    let ports = planned.topology.hosts.get(host).map(|host| &host.ports);
    let all: Vec<IpAddr> = ports
        .into_iter()
        .flat_map(|ports| ports.values())
        .flat_map(|port| &port.addresses)
        .map(|address| address.ip())
        .collect();
    let v4 = other.is_none_or(|other| other.is_ipv4());
    let first = all.first().filter(|_| other.is_none());
    match all.iter().find(|ip| ip.is_ipv4() == v4).or(first) {
        Some(ip) => Ok(*ip),
        None => bail!("the host {host} has no address for it"),
    }
}

/// Where a load is sent to.
///
/// # Errors
/// Its host has no address.
pub(crate) fn end(planned: &Planned, load: &StudyLoad) -> Result<IpAddr> {
    match load.destination {
        Some(destination) => Ok(destination),
        None => address_like(planned, &load.to, load.source),
    }
}

fn route(site: &str, via: &str) -> Value {
    let mut table = Table::new();
    table.insert("address".to_owned(), config::domain(site).into());
    table.insert("via".to_owned(), via.into());
    Value::Table(table)
}

/// Keys with those of `over` in their place, and beside them, table by table.
fn merged(under: &Table, over: &Table) -> Table {
    let mut all = under.clone();
    for (key, value) in over {
        let value = match (all.get(key), value) {
            (Some(Value::Table(under)), Value::Table(over)) => Value::Table(merged(under, over)),
            _ => value.clone(),
        };
        all.insert(key.clone(), value);
    }
    all
}

/// Values by their paths, tables opened.
fn flatten(path: &str, table: &Table, keys: &mut Vec<(String, Value)>) {
    for (key, value) in table {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        match value {
            Value::Table(table) => flatten(&path, table, keys),
            value => keys.push((path, value.clone())),
        }
    }
}
