//! MINIMIZE as an operator orders and sees it.

use crate::api::Input;
use crate::api::operator::Operator;
use crate::node::Node;
use crate::views::names::NameError;
use base::Now;
use scheduler::Scope;
use status::MinimizeStatus;

pub use crate::api::site_orders::MinimizeOrder;

pub(crate) fn label((peer, channel): (&str, &str)) -> String {
    format!("{peer}/{channel}")
}

impl Node {
    /// What MINIMIZE there is, in force or at other hours.
    pub fn minimize_status(&self, now: Now) -> Vec<MinimizeStatus> {
        let status = |scope| {
            let (floor, until, ordered) = self.operations.in_force(&self.cx, now, scope);
            if !ordered && self.operations.minimize_of(&self.cx, scope).is_none() {
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
                ordered_by: self.operations.ordered_by(&self.cx, scope),
                until: until.map(|until| until.to_string()),
            })
        };
        self.operations.scopes(&self.cx).into_iter().filter_map(status).collect()
    }

    /// An order as an input.
    ///
    /// # Errors
    /// A name that is not in the configuration, in words.
    pub fn minimize_input(
        &self,
        now: Now,
        order: &MinimizeOrder,
        by: Operator,
    ) -> Result<Input, NameError> {
        let scope = match (&order.peer, &order.channel) {
            (None, None) => Scope::Mta,
            (Some(name), _) => Scope::Peer(self.peer_named(name)?.id()),
            (None, Some(name)) => Scope::Channel(self.channel_named(name)?),
        };
        Ok(Input::Minimize { scope, floor: order.floor, until: order.until(now.utc), by })
    }
}
