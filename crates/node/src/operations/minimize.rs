//! Rule 6 in the node: MINIMIZE by the hours of the configuration, or by order of the operator.
//!
//! The scheduler knows floors and no wall clock. The node looks at the windows at each of their ends,
//! and every minute, since the wall clock may be set.

use crate::api::event::{Kind, LogLevel};
use crate::api::operator::Operator;
use crate::api::site_orders::FloorOrder;
use crate::commits::pending::{PendingAnswer, PendingRetry};
use crate::config::minimize::Minimize;
use crate::context::Context;
use crate::operations::Operations;
use base::{Now, Precedence, Utc};
use scheduler::{ChannelId, Scope};
use std::collections::BTreeSet;
use std::time::Duration;

/// How often the wall clock is looked at, at least.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// The name under which an order for this scope is kept; `None` for a peer or channel that is gone.
fn name_of(cx: &Context, scope: Scope) -> Option<String> {
    match scope {
        Scope::Mta => Some(String::new()),
        Scope::Peer(id) => Some(cx.config.peer(id)?.name.clone()),
        Scope::Channel(id) => cx.label(id),
    }
}

fn is_ordered(cx: &Context, scope: Scope) -> Option<Scope> {
    let name = name_of(cx, scope)?;
    cx.floor_orders.get(&name).map(|_| scope)
}

impl Operations {
    /// An operator's order. A floor is in force until `until`, or until withdrawn; none until a time
    /// suspends the windows of the configuration so long; none without a time withdraws the order.
    pub(crate) fn order_minimize(
        &mut self,
        cx: &mut Context,
        now: Now,
        scope: Scope,
        (floor, until): (Option<Precedence>, Option<Utc>),
        by: &Operator,
    ) {
        let Some(name) = name_of(cx, scope) else { return };
        let is_order = floor.is_some() || until.is_some();
        let order = is_order.then(|| FloorOrder { floor, until, by: by.to_string() });
        if !is_order && cx.floor_orders.get(&name).is_none() {
            return;
        }
        cx.floor_orders.set(&name, order);
        self.look_at_minimize(cx, now);
        // It holds here already. It is written until that is durable, and then holds on all nodes.
        let batch = vec![cx.floor_orders.put()];
        let retry = PendingRetry::alone(batch);
        cx.commit(retry.batch.clone(), PendingAnswer::Retry(retry));
    }

    /// The orders as the store has them: at the start, or when another node has changed them.
    pub(crate) fn recovered_minimize(&mut self, cx: &mut Context, now: Now, value: &[u8]) {
        if let Err(error) = cx.floor_orders.recovered(value) {
            let detail = format!("the orders of MINIMIZE are lost: {error}");
            cx.event(LogLevel::Error, Kind::StoreFailed, detail);
        }
        if cx.life.is_started() {
            self.look_at_minimize(cx, now);
        }
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
        cx.floor_orders.retain(|order| order.until.is_none_or(|until| until > earliest));
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
        for peer in &cx.config.peers {
            scopes.extend(is_ordered(cx, Scope::Peer(peer.id())));
            scopes.extend(peer.channels().filter_map(|(id, _)| is_ordered(cx, Scope::Channel(id))));
        }
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
        if let Some(order) = name_of(cx, scope).and_then(|name| cx.floor_orders.get(&name)) {
            return (order.floor, order.until, true);
        }
        let Some(configured) = self.minimize_of(cx, scope) else { return (None, None, false) };
        let is_open = configured.windows.is_open(now.utc);
        (is_open.then_some(configured.floor), configured.windows.next_change(now.utc), false)
    }

    /// Who ordered what holds for a scope, if an order does.
    pub(crate) fn ordered_by(&self, cx: &Context, scope: Scope) -> Option<String> {
        let name = name_of(cx, scope)?;
        cx.floor_orders.get(&name).map(|order| order.by.clone())
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
