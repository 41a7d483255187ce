//! Rule 6 in the node: MINIMIZE by the hours of the configuration, or by order of the operator.
//!
//! The scheduler knows floors and no wall clock. The node looks at the windows at each of their ends,
//! and every minute, since the wall clock may be set.

use crate::api::ChannelId;
use crate::event::{Kind, Level};
use crate::node::Node;
use base::window::Windows;
use base::{Instant, Now, Precedence, Utc};
use scheduler::Scope;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How often the wall clock is looked at, at least.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// Nothing below a floor goes out at certain hours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Minimize {
    /// The lowest precedence that goes out.
    pub floor: Precedence,
    /// When.
    pub windows: Windows,
}

/// What the operator ordered: in force until then, or until it is withdrawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Order {
    floor: Option<Precedence>,
    until: Option<Utc>,
}

/// What is in force.
#[derive(Debug, Default)]
pub(crate) struct Minimizing {
    /// As told to the scheduler.
    floors: BTreeMap<Scope, Precedence>,
    orders: BTreeMap<Scope, Order>,
    look_at: Option<Instant>,
}

impl Minimizing {
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.look_at
    }
}

impl Node {
    /// An operator's order. A floor is in force until `until`, or until withdrawn; none until a time
    /// suspends the windows of the configuration so long; none without a time withdraws the order.
    pub(crate) fn order_minimize(
        &mut self,
        now: Now,
        scope: Scope,
        floor: Option<Precedence>,
        until: Option<Utc>,
    ) {
        if floor.is_none() && until.is_none() {
            self.minimizing.orders.remove(&scope);
        } else {
            self.minimizing.orders.insert(scope, Order { floor, until });
        }
        self.look_at_minimize(now);
    }

    /// Looks again if it is time.
    pub(crate) fn tick_minimize(&mut self, now: Now) {
        if self.minimizing.look_at.is_some_and(|at| at <= now.mono) {
            self.look_at_minimize(now);
        }
    }

    /// Brings the floors up to date: at the start, when a window begins or ends, after an order or a
    /// change of configuration.
    pub(crate) fn look_at_minimize(&mut self, now: Now) {
        self.minimizing.orders.retain(|_, order| order.until.is_none_or(|until| until > now.utc));
        let mut scopes: BTreeSet<Scope> = self.minimizing.floors.keys().copied().collect();
        scopes.extend(self.minimizing.orders.keys().copied());
        scopes.insert(Scope::Switch);
        scopes.extend(self.channels.keys().map(|id| Scope::Channel(*id)));
        let mut next = now.utc + LOOK_EVERY;
        for scope in scopes {
            let order = self.minimizing.orders.get(&scope).copied();
            let configured = self.minimize_of(scope);
            let change = configured.and_then(|m| m.windows.next_change(now.utc));
            let ends = order.and_then(|order| order.until);
            next = change.into_iter().chain(ends).fold(next, Utc::min);
            let by_hours = configured.filter(|m| m.windows.is_open(now.utc)).map(|m| m.floor);
            let floor = order.map_or(by_hours, |order| order.floor);
            self.set_floor(now, scope, floor, order.is_some());
        }
        let wait = next.since(now.utc);
        self.minimizing.look_at = self.started.then_some(now.mono + wait);
    }

    fn minimize_of(&self, scope: Scope) -> Option<&Minimize> {
        match scope {
            Scope::Switch => self.config.minimize.as_ref(),
            Scope::Peer(_) => None,
            Scope::Channel(id) => self.peer_and_channel(id)?.1.minimize.as_ref(),
        }
    }

    fn set_floor(&mut self, now: Now, scope: Scope, floor: Option<Precedence>, ordered: bool) {
        let old = self.minimizing.floors.get(&scope).copied();
        if old == floor {
            return;
        }
        let known = self.queue.scheduler.set_floor(now.mono, scope, floor);
        match floor.filter(|_| known) {
            Some(floor) => self.minimizing.floors.insert(scope, floor),
            None => self.minimizing.floors.remove(&scope),
        };
        if !known {
            return;
        }
        let by = if ordered { "ordered by the operator" } else { "by the configured hours" };
        let (level, detail) = match floor {
            Some(floor) => (Level::Warning, format!("nothing below {floor} goes out, {by}")),
            None => (Level::Info, format!("lifted, {by}")),
        };
        let channel: Option<ChannelId> = match scope {
            Scope::Channel(id) => Some(id),
            Scope::Switch | Scope::Peer(_) => None,
        };
        let detail = match scope {
            Scope::Peer(id) => match self.config.peer(id) {
                Some(peer) => format!("peer {}: {detail}", peer.name),
                None => detail,
            },
            Scope::Switch | Scope::Channel(_) => detail,
        };
        self.event(level, Kind::Minimize, detail).channel(channel);
    }
}
