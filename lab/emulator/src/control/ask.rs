//! What a running network is asked, and how its driver is reached.

use crate::carrier::flood::{FloodAsk, FloodStatus};
use crate::carrier::tap::TapSender;
use crate::control::status::Status;
use router::policy::TableFlow;
use serde::{Deserialize, Serialize};
use std::io::{PipeReader, PipeWriter, Read as _, Write as _};
use std::sync::mpsc::{Receiver, Sender, channel};

/// A packet that passed a port that someone listens to.
#[derive(Clone, Debug)]
pub(crate) struct Passed {
    /// When, in nanoseconds since 1970.
    pub(crate) at: u64,
    /// Whether into the node, or out of it.
    pub(crate) inbound: bool,
    /// Its octets from the IP header on.
    pub(crate) octets: Vec<u8>,
}

/// A change of a table of flows, or a look at it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlowAsk {
    /// One more, behind all others.
    Add {
        /// The table's name.
        table: String,
        /// The flow.
        flow: TableFlow,
        /// The name of the one it stands right before, instead.
        #[serde(default)]
        before: Option<String>,
    },
    /// Another one in the place of that of its name: what waits there goes on at its rate.
    Replace {
        /// The table's name.
        table: String,
        /// The flow.
        flow: TableFlow,
    },
    /// One less.
    Delete {
        /// The table's name.
        table: String,
        /// The flow's name.
        flow: String,
    },
    /// All there are.
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
    /// Hand on what passes a port, until its listener is gone.
    Listen { port: String, to: TapSender },
    /// Forget the listeners that are gone.
    Sweep,
    /// A flood.
    Flood(FloodAsk),
    /// What became of all floods.
    Floods,
}

/// Its answer.
#[derive(Debug)]
pub(crate) enum Reply {
    /// To [`Ask::Status`].
    Status(Box<Status>),
    /// To [`FlowAsk::List`]: tables with their flows.
    Flows(Vec<(String, Vec<TableFlow>)>),
    /// To [`Ask::Floods`].
    Floods(Vec<FloodStatus>),
    /// It is done.
    Done,
}

/// A question with the way back for its answer; what is wrong with it is said in words.
pub(crate) struct Asked {
    pub(crate) ask: Ask,
    pub(crate) answer: Sender<Result<Reply, String>>,
}

/// Who asks.
#[derive(Debug)]
pub(crate) struct Asker {
    questions: Sender<Asked>,
    wake: PipeWriter,
}

/// Who is asked.
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
    /// Another one.
    pub(crate) fn another(&self) -> std::io::Result<Asker> {
        Ok(Asker { questions: self.questions.clone(), wake: self.wake.try_clone()? })
    }

    /// Asks, and waits for the answer.
    pub(crate) fn ask(&mut self, ask: Ask) -> Result<Reply, String> {
        let (answer, notified) = channel();
        let gone = || "the network is ending".to_owned();
        self.questions.send(Asked { ask, answer }).map_err(|_| gone())?;
        self.wake();
        notified.recv().map_err(|_| gone())?
    }

    /// Lets the driver look up: at questions, and at whether it shall end.
    pub(crate) fn wake(&mut self) {
        let _ = self.wake.write(&[0]);
    }
}

impl Questions {
    /// The next one; `None` where there is none now. Called once `wake` is readable.
    pub(crate) fn next(&self) -> Option<Asked> {
        self.questions.try_recv().ok()
    }

    /// Takes what made `wake` readable, a question's octet or some.
    pub(crate) fn woken(&mut self) {
        let mut octets = [0; 64];
        let _ = self.wake.read(&mut octets);
    }
}
