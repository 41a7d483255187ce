//! The octets of an association in words, layer by layer, for whoever looks for the reason why two systems do not
//! understand each other.
//!
//! An [`Explainer`] reads the octets of both directions by itself: it has no part in the association, and what our
//! own machines think of the octets does not matter here. What it does not know it shows, and reads on. It holds at
//! most a packet and a TSDU for each direction, and gives at most [`MAX_LINES`] lines.
//!
//! Nothing that has the form of a password is shown, nor what [`Explainer::new`] was given as secret.

mod acse;
mod fields;
mod presentation;
mod rtse;
mod session;
#[cfg(test)]
mod tests;
mod transport;

use bytes::Bytes;
use std::collections::VecDeque;
use std::fmt;

/// Most lines for one association.
pub const MAX_LINES: usize = 400;

/// Most parameters that a line shows.
const MAX_DETAILS: usize = 48;

/// Most octets of a TSDU that are read; the rest is counted.
const MAX_TSDU: usize = 64 << 10;

/// Which end sent the octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// We.
    Sent,
    /// The peer.
    Received,
}

/// A layer, from the bottom up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// RFC 1006 and X.224 class 0.
    Transport,
    /// X.225.
    Session,
    /// X.226.
    Presentation,
    /// X.227.
    Acse,
    /// X.228.
    Rtse,
    /// X.411: MTA-bind, whose octets the user of the stack reads.
    Bind,
}

impl Layer {
    /// The layer in a word.
    pub fn name(self) -> &'static str {
        match self {
            Layer::Transport => "transport",
            Layer::Session => "session",
            Layer::Presentation => "presentation",
            Layer::Acse => "acse",
            Layer::Rtse => "rtse",
            Layer::Bind => "bind",
        }
    }
}

/// What prevents an association, by the octets of the end that prevents it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Not RFC 1006: the first octets of a packet.
    NotTpkt,
    /// The PDU cannot be read.
    Malformed,
    /// DR: no such transport selector (2, 3).
    TransportAddress,
    /// DR, reason 130: the classes of transport.
    TransportClass,
    /// A reason of congestion, at any layer: try again later.
    Congestion,
    /// DR or ER with another reason.
    TransportOther(u8),
    /// REFUSE: no such session selector (129, 130).
    SessionAddress,
    /// REFUSE: the session protocol's versions (132).
    SessionVersion,
    /// REFUSE with the reason of a layer above (0, 2).
    SessionUser,
    /// REFUSE with another reason.
    SessionOther(u8),
    /// ABORT of the session provider: protocol error or no reason.
    SessionAbort,
    /// ABORT by a layer above.
    UserAbort,
    /// ACCEPT without these functional units that RTSE needs.
    FunctionalUnits(u16),
    /// CPR: no such presentation selector (3).
    PresentationAddress,
    /// CPR with another reason, or ARP.
    PresentationOther(i64),
    /// A presentation context was refused.
    ContextRefused(i64),
    /// The answer is in X.410 mode, the call was in normal mode.
    AnswersInX410,
    /// The answer is in normal mode, the call was in X.410 mode.
    AnswersInNormal,
    /// AARE: the application context is not supported.
    ApplicationContext,
    /// AARE: rejected, with this diagnostic of acse-service-user.
    AcseRejected(i64),
    /// ABRT.
    AcseAbort,
    /// RTORJ with a refuseReason: 1 cannotRecover, 2 validationFailure, or another.
    RtseRefused(i64),
    /// RTORJ, refuseReason 3: the dialogue mode.
    DialogueMode,
    /// RTAB, with its abortReason.
    RtseAbort(i64),
    /// MTABindError with this number.
    BindError(i64),
}

/// Something that prevents the association.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// What it is.
    pub cause: Cause,
    /// Standard and clause.
    pub clause: &'static str,
    /// The octets of the PDU in hexadecimal, shortened, without what may be a password.
    pub octets: String,
}

/// A bind in an RTORQ, RTOAC or RTORJ: a whole BER element. It has a password: `Debug` shows its length only.
#[derive(Clone, PartialEq, Eq)]
pub enum Bind {
    /// MTABindArgument.
    Argument(Bytes),
    /// MTABindResult.
    Result(Bytes),
}

impl fmt::Debug for Bind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, octets) = match self {
            Bind::Argument(octets) => ("Argument", octets),
            Bind::Result(octets) => ("Result", octets),
        };
        write!(f, "{name}({} octets)", octets.len())
    }
}

/// What one layer of a PDU has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Which end sent it.
    pub direction: Direction,
    /// The layer.
    pub layer: Layer,
    /// The PDU in words.
    pub text: String,
    /// Its parameters in words.
    pub details: Vec<String>,
    /// What prevents the association, if it is in this PDU.
    pub trouble: Option<Trouble>,
    /// A bind, for whoever can read it.
    pub bind: Option<Bind>,
}

/// The mode that an end proposed or answered in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ShownMode {
    Normal,
    X410,
}

/// What the explanation of a PDU takes from those before it.
#[derive(Default)]
struct Known {
    /// Presentation contexts in the order proposed: identifier, name of the abstract syntax.
    contexts: Vec<(i64, String)>,
    mode: Option<ShownMode>,
    /// An ordered release has begun: what ends the connection now is not a trouble.
    releasing: bool,
    /// The association was refused or aborted: what ends the connection now is no other trouble.
    refused: bool,
}

/// Octets that are never shown.
struct Masks(Vec<Bytes>);

/// Explains one association.
pub struct Explainer {
    masks: Masks,
    known: Known,
    /// Sent, received.
    streams: [Stream; 2],
    lines: VecDeque<Line>,
    given: usize,
}

/// One direction.
#[derive(Default)]
struct Stream {
    /// A packet that is not complete.
    packet: Vec<u8>,
    tsdu: Vec<u8>,
    /// Octets of the TSDU that are not in `tsdu`.
    beyond: usize,
    /// It cannot be read any further.
    broken: bool,
}

impl Explainer {
    /// Without any octet yet. No output has these secrets, if they have three octets or more.
    pub fn new(secrets: impl IntoIterator<Item = Bytes>) -> Explainer {
        Explainer {
            masks: Masks(secrets.into_iter().filter(|secret| secret.len() >= 3).collect()),
            known: Known::default(),
            streams: Default::default(),
            lines: VecDeque::new(),
            given: 0,
        }
    }

    /// Takes octets of one direction, in any division.
    pub fn octets(&mut self, direction: Direction, mut octets: &[u8]) {
        let [sent, received] = &mut self.streams;
        let stream = if direction == Direction::Sent { sent } else { received };
        let mut out =
            Out { direction, masks: &self.masks, known: &mut self.known, lines: Vec::new() };
        while !octets.is_empty() && !stream.broken {
            octets = stream.take(octets, &mut out);
        }
        for line in out.lines {
            self.given += 1;
            if self.given <= MAX_LINES {
                self.lines.push_back(line);
            }
        }
    }

    /// The next line.
    pub fn poll(&mut self) -> Option<Line> {
        self.lines.pop_front()
    }

    /// A text of the peer, quoted, shortened and without secrets.
    pub fn quoted(&self, octets: &[u8]) -> String {
        self.masks.quoted(octets)
    }

    /// A text that others made of a peer's octets, without secrets.
    pub fn without_secrets(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.masks.masked(text.as_bytes(), b'*')).into_owned()
    }

    /// Octets that were begun and do not make a packet.
    pub fn unfinished(&self, direction: Direction) -> usize {
        let [sent, received] = &self.streams;
        let stream = if direction == Direction::Sent { sent } else { received };
        stream.packet.len()
    }
}

/// Takes the lines of one PDU.
struct Out<'a> {
    direction: Direction,
    masks: &'a Masks,
    known: &'a mut Known,
    lines: Vec<Line>,
}

impl Out<'_> {
    fn line(&mut self, layer: Layer, text: impl Into<String>, details: Vec<String>) {
        let (direction, text, mut details) = (self.direction, text.into(), details);
        if details.len() > MAX_DETAILS {
            details.truncate(MAX_DETAILS);
            details.push("...".to_owned());
        }
        self.lines.push(Line { direction, layer, text, details, trouble: None, bind: None });
    }

    /// The line added last prevents the association.
    fn trouble(&mut self, cause: Cause, clause: &'static str, octets: &[u8]) {
        let octets = self.masks.hex(octets);
        if let Some(line) = self.lines.last_mut() {
            line.trouble = Some(Trouble { cause, clause, octets });
        }
    }

    /// A PDU that cannot be read.
    fn malformed(
        &mut self,
        layer: Layer,
        what: &str,
        why: &dyn fmt::Display,
        clause: &'static str,
        octets: &[u8],
    ) {
        self.line(layer, format!("{what}: cannot be read: {why}"), Vec::new());
        self.trouble(Cause::Malformed, clause, octets);
    }
}

impl Stream {
    /// Takes octets until a packet ends; gives the rest.
    fn take<'a>(&mut self, octets: &'a [u8], out: &mut Out<'_>) -> &'a [u8] {
        let wanted = self.wanted();
        let more = wanted.saturating_sub(self.packet.len()).min(octets.len());
        let (now, rest) = octets.split_at_checked(more).unwrap_or((octets, &[]));
        self.packet.extend_from_slice(now);
        if let Some(why) = self.not_tpkt() {
            self.broken = true;
            out.line(Layer::Transport, format!("octets that are not a TPKT: {why}"), Vec::new());
            let seen = [&self.packet, rest].concat();
            out.trouble(Cause::NotTpkt, "RFC 1006 section 6", &seen);
            self.packet = Vec::new();
        } else if self.packet.len() == self.wanted() {
            let packet = std::mem::take(&mut self.packet);
            self.packet(packet.get(osi::tpkt::HEADER..).unwrap_or_default(), out);
        }
        rest
    }

    /// Octets of the packet as far as that is known.
    fn wanted(&self) -> usize {
        match *self.packet {
            [_, _, high, low, ..] => usize::from(u16::from_be_bytes([high, low])),
            _ => osi::tpkt::HEADER,
        }
    }

    fn not_tpkt(&self) -> Option<String> {
        match *self.packet {
            [version, ..] if version != 3 => Some(format!("version {version}, not 3")),
            [_, _, high, low, ..] => {
                let length = u16::from_be_bytes([high, low]);
                (length < 7).then(|| format!("length {length}, below 7"))
            }
            _ => None,
        }
    }

    /// A TPDU.
    fn packet(&mut self, tpdu: &[u8], out: &mut Out<'_>) {
        let Some((data, end)) = transport::explain(tpdu, out) else { return };
        let room = MAX_TSDU.saturating_sub(self.tsdu.len()).min(data.len());
        self.tsdu.extend_from_slice(data.get(..room).unwrap_or_default());
        self.beyond += data.len() - room;
        if end {
            let (tsdu, beyond) = (std::mem::take(&mut self.tsdu), std::mem::take(&mut self.beyond));
            session::explain(&tsdu, beyond, out);
        }
    }
}
