//! Orders of an operator that hold on all nodes of a site, and after a restart.

use base::{Precedence, Utc};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// The name of the value in the store that has the orders of MINIMIZE.
pub const MINIMIZED: &str = "minimize";

/// The name of the value in the store that has the last acceptance of the wall clock.
pub const ACCEPTED: &str = "clock-accepted";

/// The longest time of an order.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3_600);

/// What an operator orders, with the names of the configuration; see [`Input::Minimize`](super::Input::Minimize).
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

impl MinimizeOrder {
    /// When it ends, if it is given at this time.
    #[must_use]
    pub fn until(&self, now: Utc) -> Option<Utc> {
        self.seconds.map(|seconds| now + Duration::from_secs(seconds).min(LONGEST))
    }
}

/// In the words of its fields: `flash, channel west/urgent, for 3600 s`; `off, all peers`.
impl fmt::Display for MinimizeOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.floor {
            Some(floor) => write!(f, "{floor}")?,
            None => f.write_str("off")?,
        }
        match (&self.peer, &self.channel) {
            (Some(peer), _) => write!(f, ", peer {peer}")?,
            (None, Some(channel)) => write!(f, ", channel {channel}")?,
            (None, None) => f.write_str(", all peers")?,
        }
        match self.seconds {
            Some(seconds) => write!(f, ", for {seconds} s"),
            None => Ok(()),
        }
    }
}

/// An order of MINIMIZE, as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FloorOrder {
    /// The lowest precedence that goes out; none suspends the windows of the configuration.
    pub floor: Option<Precedence>,
    /// When it ends by itself.
    pub until: Option<Utc>,
    /// The operator, in words.
    pub by: String,
}

/// An operator accepted the wall clock of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockAccepted {
    /// The time by that clock.
    pub at: Utc,
    /// The operator, in words.
    pub by: String,
}

impl ClockAccepted {
    /// The value of the store.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        // A text and a number can always be written.
        postcard::to_allocvec(self).unwrap_or_default()
    }

    /// The value of the store; `None` if it is damaged, or there is none.
    #[must_use]
    pub fn decode(value: &[u8]) -> Option<ClockAccepted> {
        postcard::from_bytes(value).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_of_minimize_is_in_words() {
        let order = |peer: Option<&str>, channel: Option<&str>, floor, seconds| {
            let (peer, channel) = (peer.map(str::to_owned), channel.map(str::to_owned));
            MinimizeOrder { peer, channel, floor, seconds }.to_string()
        };
        let flash = Some(Precedence::Flash);
        assert_eq!(order(None, None, None, None), "off, all peers");
        assert_eq!(order(Some("west"), None, flash, Some(60)), "flash, peer west, for 60 s");
        assert_eq!(order(None, Some("west/urgent"), flash, None), "flash, channel west/urgent");
    }
}
