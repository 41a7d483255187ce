use crate::Dscp;
use base::Precedence;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A shipped plan: one code point for each precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Plan {
    /// The published study's class selectors, CS0 to CS4. Equipment configured after RFC 4594
    /// serves CS1 below best effort, and so would serve Priority worse than Routine.
    Paper,
    /// Service improves with precedence in any network that follows RFC 4594.
    Rfc4594,
}

impl Plan {
    /// All plans.
    pub const ALL: [Plan; 2] = [Plan::Paper, Plan::Rfc4594];

    /// The code point for a precedence.
    pub const fn dscp(self, precedence: Precedence) -> Dscp {
        use Precedence as P;
        match (self, precedence) {
            (Plan::Paper, P::Deferred | P::Routine) => Dscp::CS0,
            (Plan::Paper, P::Priority) => Dscp::CS1,
            (Plan::Paper, P::Immediate) => Dscp::CS2,
            (Plan::Paper, P::Flash) => Dscp::CS3,
            (Plan::Paper, P::Override) => Dscp::CS4,
            (Plan::Rfc4594, P::Deferred) => Dscp::LE,
            (Plan::Rfc4594, P::Routine) => Dscp::CS0,
            (Plan::Rfc4594, P::Priority) => Dscp::AF13,
            (Plan::Rfc4594, P::Immediate) => Dscp::AF12,
            (Plan::Rfc4594, P::Flash) => Dscp::AF11,
            (Plan::Rfc4594, P::Override) => Dscp::AF21,
        }
    }

    /// Lower-case name, as in configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Plan::Paper => "paper",
            Plan::Rfc4594 => "rfc4594",
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The text is not the name of a plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown DSCP plan {0:?}: use paper or rfc4594")]
pub struct UnknownPlan(pub String);

impl FromStr for Plan {
    type Err = UnknownPlan;

    fn from_str(text: &str) -> Result<Plan, UnknownPlan> {
        Plan::ALL.into_iter().find(|p| p.name() == text).ok_or_else(|| UnknownPlan(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_as_published() {
        let row = |plan: Plan| Precedence::ALL.map(|p| plan.dscp(p).to_string()).join(" ");
        assert_eq!(row(Plan::Paper), "CS0 CS0 CS1 CS2 CS3 CS4");
        assert_eq!(row(Plan::Rfc4594), "LE CS0 AF13 AF12 AF11 AF21");
        for plan in Plan::ALL {
            assert_eq!(plan.to_string().parse(), Ok(plan));
        }
    }
}
