//! The protocol between the program `lab` and a running network, over a socket that only its owner may
//! use.
//!
//! The socket has a name in the abstract namespace and no file, so nothing is left of it. A client
//! sends one line of JSON and gets one back; after some questions the connection stays.

use crate::carrier::flood::{FloodAsk, FloodStatus};
use crate::control::ask::FlowAsk;
use crate::control::status::NetworkStatus;
use router::policy::TableFlow;
use serde::{Deserialize, Serialize};

/// The longest line, in octets.
pub(crate) const MAX_LINE: u64 = 16 << 20;

/// A question.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Question {
    /// All counters.
    Status,
    /// About the flows of a router.
    Flow {
        /// The router's name.
        router: String,
        /// The request: add, replace, delete or list flows.
        ask: FlowAsk,
    },
    /// The namespaces of a host. The connection then stays open as long as the network.
    Enter {
        /// The host's name.
        host: String,
    },
    /// Packets of a port, which follow the answer as a pcapng file until the connection ends.
    Capture {
        /// Node and port: `sar.wan`.
        port: String,
    },
    /// Start a flood: packets that the network itself makes and counts.
    Flood(FloodAsk),
    /// The state of all floods.
    Floods,
    /// End the network. The connection ends with the network's process.
    Down,
}

/// An answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// To [`Question::Status`].
    Status(Box<NetworkStatus>),
    /// Tables with their flows.
    Flows(Vec<(String, Vec<TableFlow>)>),
    /// The files of the host's namespaces.
    Enter {
        /// Of the network namespace.
        network: String,
        /// Of the user namespace, where it is another than the machine's.
        user: Option<String>,
    },
    /// To [`Question::Floods`].
    Floods(Vec<FloodStatus>),
    /// It is done, or begins.
    Done,
    /// It cannot be done; why.
    Wrong(String),
}

/// The name of a network's socket, behind the zero of an abstract one: a user's networks have names
/// of their own.
pub(crate) fn socket_name(uid: u32, network: &str) -> String {
    format!("{}{network}", socket_prefix(uid))
}

pub(crate) fn socket_prefix(uid: u32) -> String {
    format!("diffserv-lab/{uid}/")
}

/// The longest name of a network, in octets: an address of a socket has 107.
pub(crate) const MAX_NAME: usize = 64;

/// Whether this can be a network's name: letters, digits, `-`, `_` and `.`.
pub(crate) fn is_name(text: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (1..=MAX_NAME).contains(&text.len()) && text.chars().all(letter)
}
