//! Reload: reads the configuration again while the daemon runs. All of it takes effect, or
//! nothing.
//!
//! New listeners are opened before anything else changes. Removed ones are closed after the node
//! has its new configuration.

use super::socket::ListenError;
use super::transports::accept_all;
use super::{Driver, socket};
use crate::admin::{Reloaded, RemovedPeer, Verdict};
use crate::advice::{self, Facts};
use crate::config::{self, ChannelSocket, ListenSocket, Paths, Site, Tcp};
use node::changes::{Changes, EdgeChanges, Keys};
use node::{Input, ListenerId};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;
use users::Directory;

/// A listener, and the task that accepts its connections.
pub(super) struct Listening {
    socket: Arc<TcpListener>,
    task: AbortHandle,
}

impl Driver {
    /// Reads the configuration and the users again.
    pub(super) fn reload(&mut self) -> Reloaded {
        let (verdict, changes, report) = match config::load_after(&self.file, &self.site.numbering)
        {
            Err(error) => (Verdict::Wrong(error.to_string()), None, None),
            Ok((None, report)) => {
                (Verdict::Wrong("the file has errors".to_owned()), None, Some(report))
            }
            Ok((Some(site), report)) => match self.take_over(site) {
                Ok(changes) => {
                    self.peers_changed();
                    (Verdict::Applied, Some(changes), Some(report))
                }
                Err(verdict) => (verdict, None, Some(report)),
            },
        };
        let file = std::path::absolute(&self.file).unwrap_or_else(|_| self.file.clone());
        let shown = file.display().to_string();
        let shown = base::shown::line(&shown);
        match &verdict {
            Verdict::Applied | Verdict::Planned => {
                tracing::info!(file = %shown, "read the configuration again");
            }
            Verdict::Wrong(why) | Verdict::Failed(why) => {
                tracing::error!(file = %shown, why, "the configuration stays as it was");
                for problem in report.iter().flat_map(config::Findings::to_json) {
                    tracing::error!(line = problem.line, "{}", problem.message);
                }
            }
        }
        let removed = Vec::new();
        Reloaded { file, verdict, report: report.unwrap_or_default(), changes, removed }
    }

    /// What [`Driver::reload`] would do. Nothing is changed, and no listener is opened.
    pub(super) fn plan_reload(&self) -> Reloaded {
        let file = std::path::absolute(&self.file).unwrap_or_else(|_| self.file.clone());
        let refused = |why: String, report| {
            let (file, verdict) = (file.clone(), Verdict::Wrong(why));
            Reloaded { file, verdict, report, changes: None, removed: Vec::new() }
        };
        let (site, report) = match config::load_after(&self.file, &self.site.numbering) {
            Err(error) => return refused(error.to_string(), config::Findings::default()),
            Ok((None, report)) => return refused("the file has errors".to_owned(), report),
            Ok((Some(site), report)) => (site, report),
        };
        let changes = self.node.changes(&site.node, &edge_changes(&self.site, &site));
        if !changes.restart.is_empty() {
            let keys = changes.restart.join(", ");
            return refused(format!("only a restart changes {keys}"), report);
        }
        let gone = |name: &str| !site.node.peers.iter().any(|peer| peer.name == name);
        let status = self.node.status(self.clock.now());
        let removed = status.peers.into_iter().filter(|peer| gone(&peer.name)).map(|peer| {
            let mut queued = BTreeMap::new();
            for level in peer.channels.iter().flat_map(|channel| &channel.levels) {
                *queued.entry(level.precedence).or_default() += level.queued + level.in_transfer;
            }
            queued.retain(|_, count| *count > 0);
            RemovedPeer { name: peer.name, queued }
        });
        let removed = removed.collect();
        Reloaded { file, verdict: Verdict::Planned, report, changes: Some(changes), removed }
    }

    fn take_over(&mut self, site: Site) -> Result<Changes, Verdict> {
        if self.stopping {
            return Err(Verdict::Failed("the daemon is stopping".to_owned()));
        }
        let edge = edge_changes(&self.site, &site);
        let changes = self.node.changes(&site.node, &edge);
        if !changes.restart.is_empty() {
            let keys = changes.restart.join(", ");
            return Err(Verdict::Wrong(format!("only a restart changes {keys}")));
        }
        let failed = |error: &dyn std::error::Error| Verdict::Failed(error.to_string());
        let users = match &self.users.directory {
            Directory::File(_) => Some(self.users.directory.read().map_err(|e| failed(&e))?),
            // They are read meanwhile.
            Directory::Database(_) => None,
        };
        let opened = self.open_new(&site).map_err(|e| failed(&e))?;
        self.verifier =
            self.verifier.renewed(site.expected.clone(), site.node.limits.verifications);
        self.budgets.set_limits(&site.node.limits);
        self.labels.add(&site);
        let config = Box::new(site.node.clone());
        self.site = site;
        self.input(Input::Configure { config, edge });
        for (id, listener) in opened {
            self.accept_on(id, listener);
        }
        let site = &self.site;
        self.listening.retain(|id, listening| {
            let stays = site.listener(*id).is_some();
            if !stays {
                listening.task.abort();
            }
            stays
        });
        match users {
            Some(users) => self.take_users(users),
            None => self.reload_users(None),
        }
        for advice in advice::give_once(&self.site, &Facts::read()) {
            advice.log();
        }
        Ok(changes)
    }

    /// Starts accepting on this listener.
    pub(super) fn accept_on(&mut self, id: ListenerId, listener: TcpListener) {
        let socket = Arc::new(listener);
        let task = tokio::spawn(accept_all(id, Arc::clone(&socket), self.incoming.clone()));
        self.listening.insert(id, Listening { socket, task: task.abort_handle() });
    }

    /// Stops accepting.
    pub(super) fn close_listeners(&mut self) {
        for listening in std::mem::take(&mut self.listening).values() {
            listening.task.abort();
        }
    }

    /// Opens the new listeners, all or none. Where one replaces another at the same address, for
    /// example with another mark, both listen until the reload is decided.
    fn open_new(&self, site: &Site) -> Result<Vec<(ListenerId, TcpListener)>, ListenError> {
        let gone = || self.site.listeners.iter().filter(|old| site.listener(old.id).is_none());
        let mut opened = Vec::new();
        if self.orders.is_closed {
            return Ok(opened); // `mta drain --undo` opens them
        }
        for new in site.listeners.iter().filter(|new| !self.listening.contains_key(&new.id)) {
            let in_its_place: Vec<&TcpListener> = gone()
                .filter(|old| config::clash(old.address, new.address))
                .filter_map(|old| Some(&*self.listening.get(&old.id)?.socket))
                .collect();
            opened.push((new.id, listen_beside(new, &in_its_place)?));
        }
        Ok(opened)
    }
}

/// Listens on an address that listeners of ours use until they are closed. No other process may,
/// before and after.
fn listen_beside(new: &ListenSocket, others: &[&TcpListener]) -> Result<TcpListener, ListenError> {
    let shared = |on| others.iter().try_for_each(|other| socket::share(other, on));
    let listener = shared(true).and_then(|()| socket::listen(new, !others.is_empty()));
    let closed = shared(false);
    let named = |error| ListenError::new(new, error);
    let listener = listener.map_err(named)?;
    closed.and_then(|()| socket::share(&listener, false)).map_err(named)?;
    Ok(listener)
}

/// Differences between two sites that the node does not see.
fn edge_changes(old: &Site, new: &Site) -> EdgeChanges {
    let Site {
        paths,
        events,
        tracking,
        metrics,
        engine,
        stop_timeout,
        disk_reserve,
        node: _,
        listeners: _,
        channels,
        expected,
        numbering: _,
    } = old;
    let Paths { data_dir, admin_socket } = paths;
    let (mut restart, mut keys) = (Keys::default(), Keys::default());
    restart.at_once("mta.data_dir", *data_dir != new.paths.data_dir);
    restart.at_once("mta.admin_socket", *admin_socket != new.paths.admin_socket);
    restart.at_once("events", *events != new.events);
    restart.at_once("tracking", *tracking != new.tracking);
    restart.at_once("metrics", *metrics != new.metrics);
    restart.at_once("store", *engine != new.engine);
    keys.at_once("mta.stop_timeout", *stop_timeout != new.stop_timeout);
    keys.at_once("mta.disk_reserve", *disk_reserve != new.disk_reserve);
    let expect = |(id, old)| {
        let mut keys = Keys::default();
        keys.reopens("expect", new.expected.get(id)? != old);
        Some((*id, keys))
    };
    EdgeChanges {
        restart: restart.names,
        keys: keys.names,
        peers: expected.iter().filter_map(expect).collect(),
        channels: channels
            .iter()
            .filter_map(|(id, old)| Some((*id, socket_keys(old, new.channels.get(id)?))))
            .collect(),
    }
}

fn socket_keys(old: &ChannelSocket, new: &ChannelSocket) -> Keys {
    let ChannelSocket { remote, others, tcp, connect_timeout, label: _ } = old;
    // The node compares the mark itself.
    let Tcp { dscp: _, congestion, user_timeout, keepalive } = tcp;
    let mut keys = Keys::default();
    keys.reopens("remote", *remote != new.remote || *others != new.others);
    keys.reopens("congestion", *congestion != new.tcp.congestion);
    keys.at_once("timeouts.connect", *connect_timeout != new.connect_timeout);
    keys.reopens("timeouts.unacknowledged", *user_timeout != new.tcp.user_timeout);
    keys.reopens("timeouts.keepalive", *keepalive != new.tcp.keepalive);
    keys
}

#[cfg(test)]
mod tests {
    use super::*;
    use dscp::Dscp;
    use socket2::SockRef;
    use std::net::SocketAddr;
    use std::time::Duration;

    fn marked(address: SocketAddr, dscp: Dscp) -> ListenSocket {
        let (user_timeout, keepalive) = (Duration::from_secs(7), Duration::from_secs(8));
        let tcp = Tcp { dscp, user_timeout, keepalive, ..Tcp::default() };
        ListenSocket { id: ListenerId(0), address, tcp, label: "act/flash".to_owned() }
    }

    #[tokio::test]
    async fn a_listener_with_another_mark_takes_the_place_of_one_at_its_address() {
        let any = "127.0.0.1:0".parse().unwrap();
        let old = socket::listen(&marked(any, Dscp::CS3), false).unwrap();
        let at = old.local_addr().unwrap();
        let plain = || socket::listen(&marked(at, Dscp::CS3), false);
        let new = listen_beside(&marked(at, Dscp::EF), &[&old]).unwrap();
        assert!(plain().is_err(), "nobody else");
        drop(old);
        assert!(plain().is_err());
        let out = tokio::net::TcpStream::connect(at).await.unwrap();
        let (connected, from) = socket::accept(&new).await.unwrap();
        assert_eq!(from, out.local_addr().unwrap());
        assert_eq!(SockRef::from(&connected.stream).tos_v4().unwrap(), 46 << 2);
    }

    #[tokio::test]
    async fn one_that_cannot_be_opened_leaves_the_other_as_it_was() {
        let any = "127.0.0.1:0".parse().unwrap();
        let old = socket::listen(&marked(any, Dscp::CS3), false).unwrap();
        let taken = std::net::TcpListener::bind(any).unwrap();
        let at = taken.local_addr().unwrap();
        let error = listen_beside(&marked(at, Dscp::EF), &[&old]).unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot listen on {at} for act/flash: ")), "{error}");
        assert!(!SockRef::from(&old).reuse_port().unwrap());
        tokio::net::TcpStream::connect(old.local_addr().unwrap()).await.unwrap();
        socket::accept(&old).await.unwrap();
    }

    #[test]
    fn what_only_the_edge_sees_is_compared_too() {
        let old = crate::example::example_site();
        let mut new = old.clone();
        assert_eq!(edge_changes(&old, &new).restart, [""; 0]);
        let ids: Vec<_> = old.channels.keys().copied().collect();
        let change = |site: &mut Site, n: usize, f: fn(&mut ChannelSocket)| {
            f(site.channels.get_mut(&ids[n]).unwrap());
        };
        change(&mut new, 0, |s| s.remote.port += 1);
        change(&mut new, 1, |s| s.tcp.keepalive *= 2);
        change(&mut new, 2, |s| s.connect_timeout *= 2);
        new.paths.admin_socket.push("x");
        new.stop_timeout *= 2;
        new.disk_reserve = Some(7);
        new.expected.values_mut().for_each(|secret| *secret = node::Secret::default());
        let edge = edge_changes(&old, &new);
        assert_eq!(
            (edge.restart, edge.keys),
            (
                vec!["mta.admin_socket".into()],
                vec!["mta.stop_timeout".into(), "mta.disk_reserve".into()]
            )
        );
        let change =
            |n: usize| (edge.channels[&ids[n]].names.join(" "), edge.channels[&ids[n]].reopens);
        assert_eq!(change(0), ("remote".to_owned(), true));
        assert_eq!(change(1), ("timeouts.keepalive".to_owned(), true));
        assert_eq!(change(2), ("timeouts.connect".to_owned(), false));
        assert_eq!(change(3), (String::new(), false));
        assert!(edge.peers.values().all(|keys| keys.reopens && keys.names == ["expect"]));
    }
}
