//! Questions to the driver of a running network, and the channel to it.

use crate::carrier::flood::{FloodAsk, FloodStatus};
use crate::carrier::tap::TapSender;
use crate::control::status::NetworkStatus;
use router::policy::TableFlow;
use serde::{Deserialize, Serialize};
use std::io::{PipeReader, PipeWriter, Read as _, Write as _};
use std::sync::mpsc::{Receiver, Sender, channel};

/// A packet at a port with a listener.
#[derive(Clone, Debug)]
pub(crate) struct Passed {
    /// Its time, in nanoseconds since 1970.
    pub(crate) at: u64,
    /// Whether it enters the node.
    pub(crate) inbound: bool,
    /// Its octets from the IP header on.
    pub(crate) octets: Vec<u8>,
}

/// A change or a listing of a table of flows.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlowAsk {
    /// Adds a flow after all others.
    Add {
        /// The table's name.
        table: String,
        /// The flow.
        flow: TableFlow,
        /// Instead, right before the flow of this name.
        #[serde(default)]
        before: Option<String>,
    },
    /// Replaces the flow of the same name; packets that wait there continue at the new rate.
    Replace {
        /// The table's name.
        table: String,
        /// The flow.
        flow: TableFlow,
    },
    /// Deletes a flow.
    Delete {
        /// The table's name.
        table: String,
        /// The flow's name.
        flow: String,
    },
    /// Lists flows.
    List {
        /// Of this table only.
        table: Option<String>,
    },
}

/// A question to the driver.
pub(crate) enum Ask {
    /// All counters.
    Status,
    /// About the flows of a router.
    Flow { router: String, ask: FlowAsk },
    /// Pass on the packets of a port until the listener ends.
    Listen { port: String, to: TapSender },
    /// Remove listeners that have ended.
    Sweep,
    /// A flood.
    Flood(FloodAsk),
    /// The state of all floods.
    Floods,
}

/// Its answer.
#[derive(Debug)]
pub(crate) enum Reply {
    /// To [`Ask::Status`].
    Status(Box<NetworkStatus>),
    /// To [`FlowAsk::List`]: tables with their flows.
    Flows(Vec<(String, Vec<TableFlow>)>),
    /// To [`Ask::Floods`].
    Floods(Vec<FloodStatus>),
    /// It is done.
    Done,
}

/// A question with the channel for its answer; an error is a text.
pub(crate) struct Asked {
    pub(crate) ask: Ask,
    pub(crate) answer: Sender<Result<Reply, String>>,
}

/// The asking end of the channel to the driver.
#[derive(Debug)]
pub(crate) struct Asker {
    questions: Sender<Asked>,
    wake: PipeWriter,
}

/// The driver's end of the channel.
pub(crate) struct Questions {
    questions: Receiver<Asked>,
    /// Readable when there may be a question.
    pub(crate) wake: PipeReader,
}

/// The two ends.
pub(crate) fn questions() -> std::io::Result<(Asker, Questions)> {
    let (sender, receiver) = channel();
    let (reader, writer) = std::io::pipe()?;
    Ok((Asker { questions: sender, wake: writer }, Questions { questions: receiver, wake: reader }))
}

impl Asker {
    /// Another asking end.
    pub(crate) fn another(&self) -> std::io::Result<Asker> {
        Ok(Asker { questions: self.questions.clone(), wake: self.wake.try_clone()? })
    }

    /// Sends a question, and waits for the answer.
    pub(crate) fn ask(&mut self, ask: Ask) -> Result<Reply, String> {
        let (answer, notified) = channel();
        let gone = || "the network is ending".to_owned();
        self.questions.send(Asked { ask, answer }).map_err(|_| gone())?;
        self.wake();
        notified.recv().map_err(|_| gone())?
    }

    /// Wakes the driver, so that it checks for questions and for the end.
    pub(crate) fn wake(&mut self) {
        let _ = self.wake.write(&[0]);
    }
}

impl Questions {
    /// The next one; `None` where there is none now. Called once `wake` is readable.
    pub(crate) fn next(&self) -> Option<Asked> {
        self.questions.try_recv().ok()
    }

    /// Reads the octets that made `wake` readable.
    pub(crate) fn woken(&mut self) {
        let mut octets = [0; 64];
        let _ = self.wake.read(&mut octets);
    }
}
