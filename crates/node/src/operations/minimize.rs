//! Rule 6 in the node: MINIMIZE by the hours of the configuration, or by order of the operator.
//!
//! The scheduler knows floors and no wall clock. The node looks at the windows at each of their ends,
//! and every minute, since the wall clock may be set.

use crate::api::event::{Kind, LogLevel};
use crate::config::minimize::Minimize;
use crate::context::Context;
use crate::operations::Operations;
use crate::operations::minimizing::FloorOrder;
use base::{Now, Precedence, Utc};
use scheduler::{ChannelId, Scope};
use std::collections::BTreeSet;
use std::time::Duration;

/// How often the wall clock is looked at, at least.
const LOOK_EVERY: Duration = Duration::from_secs(60);

impl Operations {
    /// An operator's order. A floor is in force until `until`, or until withdrawn; none until a time
    /// suspends the windows of the configuration so long; none without a time withdraws the order.
    pub(crate) fn order_minimize(
        &mut self,
        cx: &mut Context,
        now: Now,
        scope: Scope,
        floor: Option<Precedence>,
        until: Option<Utc>,
    ) {
        if floor.is_none() && until.is_none() {
            self.minimizing.orders.remove(&scope);
        } else {
            self.minimizing.orders.insert(scope, FloorOrder { floor, until });
        }
        self.look_at_minimize(cx, now);
    }

    /// Looks again if it is time.
    pub(crate) fn tick_minimize(&mut self, cx: &mut Context, now: Now) {
        if self.minimizing.look_at.is_some_and(|at| at <= now.mono) {
            self.look_at_minimize(cx, now);
        }
    }

    /// Brings the floors up to date: at the start, when a window begins or ends, after an order or a
    /// change of configuration.
    pub(crate) fn look_at_minimize(&mut self, cx: &mut Context, now: Now) {
        let earliest = cx.queue.wall.earliest(now);
        self.minimizing.orders.retain(|_, order| order.until.is_none_or(|until| until > earliest));
        let mut next = now.utc + LOOK_EVERY;
        for scope in self.scopes(cx) {
            let (floor, until, ordered) = self.in_force(cx, now, scope);
            next = until.into_iter().fold(next, Utc::min);
            self.set_floor(cx, now, scope, floor, ordered);
        }
        // An order that is over by a doubted clock stays in force.
        let wait = next.since(now.utc);
        let wait = if wait.is_zero() { LOOK_EVERY } else { wait };
        self.minimizing.look_at = cx.life.is_started().then_some(now.mono + wait);
    }

    pub(crate) fn scopes(&self, cx: &Context) -> BTreeSet<Scope> {
        let mut scopes: BTreeSet<Scope> = self.minimizing.floors.keys().copied().collect();
        scopes.extend(self.minimizing.orders.keys().copied());
        scopes.insert(Scope::Mta);
        scopes.extend(cx.config.minimized().map(Scope::Channel));
        scopes
    }

    /// The floor, until when, and whether the operator ordered it.
    pub(crate) fn in_force(
        &self,
        cx: &Context,
        now: Now,
        scope: Scope,
    ) -> (Option<Precedence>, Option<Utc>, bool) {
        if let Some(order) = self.minimizing.orders.get(&scope) {
            return (order.floor, order.until, true);
        }
        let Some(configured) = self.minimize_of(cx, scope) else { return (None, None, false) };
        let is_open = configured.windows.is_open(now.utc);
        (is_open.then_some(configured.floor), configured.windows.next_change(now.utc), false)
    }

    fn set_floor(
        &mut self,
        cx: &mut Context,
        now: Now,
        scope: Scope,
        floor: Option<Precedence>,
        ordered: bool,
    ) {
        let old = self.minimizing.floors.get(&scope).copied();
        if old == floor {
            return;
        }
        let known = cx.queue.scheduler.set_floor(now.mono, scope, floor);
        match floor.filter(|_| known) {
            Some(floor) => self.minimizing.floors.insert(scope, floor),
            None => self.minimizing.floors.remove(&scope),
        };
        if !known {
            return;
        }
        // Without hours only an operator changes anything.
        let by_hours = !ordered && self.minimize_of(cx, scope).is_some();
        let by = if by_hours { "by the configured hours" } else { "ordered by the operator" };
        let (level, detail) = match floor {
            Some(floor) => (LogLevel::Warning, format!("nothing below {floor} goes out, {by}")),
            None => (LogLevel::Info, format!("lifted, {by}")),
        };
        let channel: Option<ChannelId> = match scope {
            Scope::Channel(id) => Some(id),
            Scope::Mta | Scope::Peer(_) => None,
        };
        let detail = match scope {
            Scope::Peer(id) => match cx.config.peer(id) {
                Some(peer) => format!("peer {}: {detail}", peer.name),
                None => detail,
            },
            Scope::Mta | Scope::Channel(_) => detail,
        };
        cx.event(level, Kind::Minimize, detail).channel(channel);
    }

    pub(crate) fn minimize_of<'a>(&self, cx: &'a Context, scope: Scope) -> Option<&'a Minimize> {
        match scope {
            Scope::Mta => cx.config.minimize.as_ref(),
            Scope::Peer(_) => None,
            Scope::Channel(id) => cx.peer_and_channel(id)?.1.minimize.as_ref(),
        }
    }
}
