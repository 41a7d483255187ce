//! What a node shows of its site, and the orders to it as a node: draining, and its end.

use super::Membered;
use crate::admin::DrainOrder;
use crate::clock::since_boot;
use crate::config::Site;
use crate::config::section::store::engine::StoreEngine;
use crate::driver::{Driver, database_options};
use engine::NextHop;
use node::metrics::{Family, Sample, Value};
use node::status::Status;
use site_view::{Elsewhere, Figures, Watcher};
use std::sync::Arc;
use tokio::sync::oneshot;

/// Begins to look at the database of a site, where it has one.
pub(in crate::driver) fn watch(site: &Site) -> Option<Watcher> {
    let StoreEngine::Postgres(database) = &site.engine else { return None };
    let options = database_options(database);
    match Watcher::start(&database.url, &options, since_boot) {
        Ok(watcher) => Some(watcher),
        Err(error) => {
            tracing::warn!(%error, "the database is not watched: no line names standbys that are away");
            None
        }
    }
}

/// Orders that were given to this process as a node.
#[derive(Debug, Default)]
pub(in crate::driver) struct NodeOrders {
    /// It has given all its shards away.
    pub(in crate::driver) drained: bool,
    /// It stays then, instead of ending.
    pub(in crate::driver) stays: bool,
    /// It accepts no connection: clients go to the other nodes.
    pub(in crate::driver) is_closed: bool,
    /// Commits that the database refused, since another node had the shard or this one no lease.
    pub(in crate::driver) fenced: u64,
}

impl Driver {
    /// Whether it ends now: it was drained for that, and the others can take what it had.
    pub(in crate::driver) fn has_parted(&self) -> bool {
        self.orders.drained && !self.orders.stays && self.no_commits().is_none()
    }

    /// Why no commit is possible now.
    fn no_commits(&self) -> Option<String> {
        self.figures().and_then(|figures| figures.no_commits())
    }

    /// Adds to a status what the node cannot know of its site.
    pub(in crate::driver) fn add_site(&self, status: &mut Status) {
        let Some(machine) = self.member.as_ref().map(Membered::membership) else { return };
        site_view::add_site(status, machine, self.clock.now().mono, self.figures().as_ref());
    }

    fn figures(&self) -> Option<Figures> {
        self.watcher.as_ref().and_then(Watcher::figures)
    }

    /// Why this node cannot change what is in a mailbox: another one has it, or none.
    pub(in crate::driver) fn mailbox_elsewhere(&self, address: &str) -> Option<String> {
        let machine = self.member.as_ref().map(Membered::membership)?;
        let shard = NextHop::Mailbox(address.to_owned()).queue();
        if machine.owns(shard) {
            return None;
        }
        let owner = machine.owner_of(shard).map(|owner| {
            machine.name_of(owner).map_or_else(|| format!("of epoch {owner}"), str::to_owned)
        });
        Some(match owner {
            Some(owner) => format!("node {owner} has the mailbox {address}: order it there"),
            None => format!(
                "no node has the mailbox {address} now: order it again once its user has bound to a node, or something \
                 has come for it (mta cluster status shows which node has it)"
            ),
        })
    }

    /// Gives the shards away, or takes some again.
    ///
    /// # Errors
    /// It is not a node, or no other node would take them, in words.
    pub(in crate::driver) fn order_drain(&mut self, order: DrainOrder) -> Result<(), String> {
        let Some(machine) = self.member.as_ref().map(Membered::membership) else {
            return Err("this MTA is not a node of a site: SIGTERM ends it in order".to_owned());
        };
        match order {
            DrainOrder::Undo => {
                self.orders = NodeOrders { fenced: self.orders.fenced, ..NodeOrders::default() };
                if self.listening.is_empty() {
                    self.listen().map_err(|error| error.to_string())?;
                }
                tracing::info!("this node takes connections and shards again");
                self.site_input(ownership::Input::Undrain);
            }
            DrainOrder::Drain { stay } => {
                if let Some(why) = self.no_commits() {
                    return Err(format!(
                        "{why}: the others could take nothing from this node now. Order it again when `mta cluster \
                         status` shows no trouble, or end this node with SIGTERM"
                    ));
                }
                let own = machine.epoch();
                let able = |node: &&membership::NodeRow| {
                    Some(node.epoch) != own && !node.draining && !node.lease_left.is_zero()
                };
                if machine.nodes().iter().find(able).is_none() {
                    return Err(
                        "no other node of the site would take the shards: what waits would not be sent; \
                         start another node, or end this one with SIGTERM"
                            .to_owned(),
                    );
                }
                (self.orders.stays, self.orders.is_closed) = (stay, true);
                // Who is connected stays until his peer or mailbox is given away.
                self.close_listeners();
                tracing::info!(stay, "this node gives its shards away");
                self.site_input(ownership::Input::Drain);
            }
        }
        Ok(())
    }

    /// Looks at what other nodes have, on a thread of its own. Where there are none the answer is `nothing`.
    pub(in crate::driver) fn look_elsewhere<T: Send + 'static>(
        &self,
        answer: oneshot::Sender<T>,
        nothing: T,
        look: impl FnOnce(&Elsewhere<'_>) -> T + Send + 'static,
    ) {
        let Some(member) = &self.member else {
            let _ = answer.send(nothing);
            return;
        };
        let (store, cluster) = (Arc::clone(self.disk.store()), Arc::clone(&member.cluster));
        let (own, now) = (member.membership().epoch(), self.clock.now().utc);
        tokio::task::spawn_blocking(move || {
            let _ = answer.send(look(&Elsewhere { store: &*store, cluster: &*cluster, own, now }));
        });
    }

    /// The metrics of a node and of its database.
    pub(in crate::driver) fn site_metrics(&self) -> Vec<Family> {
        let mut all = Vec::new();
        if let Some(machine) = self.member.as_ref().map(Membered::membership) {
            let now = self.clock.now().mono;
            all.extend([
                gauge(
                    "mta_site_lease_left_seconds",
                    "What is left of the lease, as the node counts it; 0 without one",
                    machine.lease_left(now).as_secs_f64(),
                ),
                gauge(
                    "mta_site_shards",
                    "Peers and mailboxes that this node has",
                    count(machine.owned().count()),
                ),
                gauge(
                    "mta_site_draining",
                    "1 while the node gives its shards away, or has",
                    f64::from(u8::from(machine.is_draining())),
                ),
                Family {
                    name: "mta_site_commits_fenced",
                    help: "Commits that the database refused, as another node had the shard or this one no lease",
                    samples: vec![sample(None, Value::Counter(self.orders.fenced))],
                },
            ]);
        }
        all.extend(self.figures().map_or_else(Vec::new, |figures| of_database(&figures)));
        all
    }
}

/// Far below 2^53.
fn count(count: usize) -> f64 {
    u32::try_from(count).unwrap_or(u32::MAX).into()
}

fn sample(standby: Option<&str>, value: Value) -> Sample {
    Sample { labels: standby.map(|name| ("standby", name.to_owned())).into_iter().collect(), value }
}

fn gauge(name: &'static str, help: &'static str, value: f64) -> Family {
    Family { name, help, samples: vec![sample(None, Value::Gauge(value))] }
}

fn of_database(figures: &Figures) -> Vec<Family> {
    let family = |gauge: site_view::Gauge| Family {
        name: gauge.name,
        help: gauge.help,
        samples: gauge
            .values
            .iter()
            .map(|(standby, value)| sample(standby.as_deref(), Value::Gauge(*value)))
            .collect(),
    };
    figures.gauges().into_iter().map(family).collect()
}
