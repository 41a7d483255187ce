//! Rule 6 in the node: MINIMIZE by the hours of the configuration, or by order of the operator.
//!
//! The scheduler knows floors and no wall clock. The node looks at the windows at each of their ends,
//! and every minute, since the wall clock may be set.

use crate::api::{ChannelId, Input};
use crate::context::Context;
use crate::event::{Kind, Level};
use crate::machines::Operations;
use crate::node::Node;
use crate::status::MinimizeStatus;
use base::window::Windows;
use base::{Instant, Now, Precedence, Utc};
use scheduler::Scope;
use serde::{Deserialize, Serialize};
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

/// The longest time of an order.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3_600);

/// What an operator orders, with the names of the configuration; see [`Input::Minimize`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MinimizeOrder {
    /// For this peer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// For this channel, as `peer/channel`. For all peers where neither is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// The lowest precedence that goes out.
    pub floor: Option<Precedence>,
    /// For so long, 366 days at most; until withdrawn where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
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
            self.minimizing.orders.insert(scope, Order { floor, until });
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
        // An order may have to go on that is over by a clock nobody trusts.
        let wait = next.since(now.utc);
        let wait = if wait.is_zero() { LOOK_EVERY } else { wait };
        self.minimizing.look_at = cx.life.started.then_some(now.mono + wait);
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
        let Some(configured) = cx.minimize_of(scope) else { return (None, None, false) };
        let is_open = configured.windows.is_open(now.utc);
        (is_open.then_some(configured.floor), configured.windows.next_change(now.utc), false)
    }

    pub(crate) fn set_floor(
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
        let by_hours = !ordered && cx.minimize_of(scope).is_some();
        let by = if by_hours { "by the configured hours" } else { "ordered by the operator" };
        let (level, detail) = match floor {
            Some(floor) => (Level::Warning, format!("nothing below {floor} goes out, {by}")),
            None => (Level::Info, format!("lifted, {by}")),
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
}

impl Node {
    /// What MINIMIZE there is, in force or at other hours.
    pub fn minimize_status(&self, now: Now) -> Vec<MinimizeStatus> {
        let told = |scope| {
            let (floor, until, ordered) = self.operations.in_force(&self.cx, now, scope);
            if !ordered && self.cx.minimize_of(scope).is_none() {
                return None;
            }
            Some(MinimizeStatus {
                on: match scope {
                    Scope::Mta => "all peers".to_owned(),
                    Scope::Peer(id) => self.cx.config.peer(id)?.name.clone(),
                    Scope::Channel(id) => label(self.cx.place(id)?),
                },
                floor,
                by: if ordered { "operator" } else { "windows" }.to_owned(),
                until: until.map(|until| until.to_string()),
            })
        };
        self.operations.scopes(&self.cx).into_iter().filter_map(told).collect()
    }

    /// An order as an input.
    ///
    /// # Errors
    /// A name that is not in the configuration, in words.
    pub fn minimize_input(&self, now: Now, order: &MinimizeOrder) -> Result<Input, String> {
        let scope = match (&order.peer, &order.channel) {
            (None, None) => Scope::Mta,
            (Some(name), _) => Scope::Peer(self.peer_named(name)?.id()),
            (None, Some(name)) => Scope::Channel(self.channel_named(name)?),
        };
        let time = order.seconds.map(|seconds| Duration::from_secs(seconds).min(LONGEST));
        Ok(Input::Minimize { scope, floor: order.floor, until: time.map(|time| now.utc + time) })
    }
}

impl Context {
    pub(crate) fn minimize_of(&self, scope: Scope) -> Option<&Minimize> {
        match scope {
            Scope::Mta => self.config.minimize.as_ref(),
            Scope::Peer(_) => None,
            Scope::Channel(id) => self.peer_and_channel(id)?.1.minimize.as_ref(),
        }
    }
}

fn label((peer, channel): (&str, &str)) -> String {
    format!("{peer}/{channel}")
}
