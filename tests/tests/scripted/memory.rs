//! Our stack in memory as the other side, with a user that takes every message.

use super::peer::Wire;
use super::reader::contains;
use base::time::Instant;
use bytes::Bytes;
use osi::api::{
    AbortReason, Config, Indication, Input, Output, Payload, RefuseReason, Request, Role,
    Selectors, Service,
};
use osi::profiles;
use osi::rtse::InterruptedReceive;
use osi::session::service::ConnectionReference;
use osi::stack::Association;
use std::collections::VecDeque;

/// MTABindArgument and MTABindResult of our site: [1] SET {MTA-HERE, IA5String "harbour"}.
const OUR_NAME: &[u8] = b"\xa1\x15\x80\x08MTA-HERE\xa1\x09\x16\x07harbour";

/// Where the octets sent to the stack are divided.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cut {
    /// As sent.
    No,
    /// Each by itself.
    Everywhere,
    /// Once, after so many octets of the whole connection.
    After(usize),
}

/// An association and its user.
pub(crate) struct Memory {
    association: Association,
    now: Instant,
    cut: Cut,
    /// Octets handed in so far.
    pub(crate) taken: usize,
    out: Vec<u8>,
    closed: bool,
    /// Confirms checkpoints only on request.
    pub(crate) user: User,
}

/// The user's data and indications.
#[derive(Default)]
pub(crate) struct User {
    /// The transfer that is being received.
    receiving: Vec<u8>,
    /// Transfers that ended.
    pub(crate) received: Vec<Vec<u8>>,
    /// All that happened, in short.
    pub(crate) events: Vec<String>,
    /// What NeedContent is answered from.
    content: Vec<u8>,
    /// Refuses every transfer with this reason.
    pub(crate) refuses: Option<AbortReason>,
    /// The peer's name and password, and our bind, if they are not those of most cases.
    pub(crate) foreign: Option<Foreign>,
    /// What a lost association left behind.
    lost: Option<InterruptedReceive>,
}

/// A peer that is known by another name, and how we are known to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Foreign {
    /// The octets of its name and of its password, as its bind has them.
    pub(crate) known_by: [&'static [u8]; 2],
    /// Our MTABindResult.
    pub(crate) own: &'static [u8],
}

/// Our site's configuration of an association.
pub(crate) fn config(checkpoint_size: u32, window: u32, tpdu_size: Option<u32>) -> Config {
    let reference = ConnectionReference {
        user: Bytes::from_static(b"\x04\x08Guinever"),
        common: Bytes::from_static(b"\x17\x0d261120101112Z"),
        additional: Bytes::new(),
    };
    let mut config = profiles::p1(Selectors::default(), Selectors::default(), reference);
    config.tpdu_size = tpdu_size;
    if let Service::Rtse(rtse) = &mut config.service {
        rtse.checkpoint_size = checkpoint_size;
        rtse.window = window;
    }
    config
}

impl Memory {
    pub(crate) fn new(config: Config, role: Role, cut: Cut) -> Memory {
        Memory {
            association: Association::new(config, role),
            now: Instant(1_000_000),
            cut,
            taken: 0,
            out: Vec::new(),
            closed: false,
            user: User::default(),
        }
    }

    /// Our responder.
    pub(crate) fn responder(cut: Cut) -> Memory {
        Memory::new(config(64, 16, None), Role::Responder, cut)
    }

    /// Our initiator, which asks for an association at once.
    pub(crate) fn initiator(config: Config, cut: Cut) -> Memory {
        let mut memory = Memory::new(config, Role::Initiator, cut);
        memory.request(Request::Open { bind: Bytes::from_static(OUR_NAME) });
        memory
    }

    /// Has a message transferred: envelope and content as the MTS-APDU `A0 {31 .., 04 ..}`.
    pub(crate) fn transfer(&mut self, envelope: &[u8], content: Vec<u8>) {
        let mut message = vec![0x31, 0x82];
        message.extend(u16::try_from(envelope.len()).unwrap().to_be_bytes());
        message.extend_from_slice(envelope);
        message.extend([0x04, 0x84]);
        message.extend(u32::try_from(content.len()).unwrap().to_be_bytes());
        let mut head = vec![0xa0, 0x84];
        head.extend(u32::try_from(message.len() + content.len()).unwrap().to_be_bytes());
        head.extend(message);
        let content_length = content.len() as u64;
        self.user.content = content;
        let payload = Payload { head: head.into(), content_length, tail: Bytes::new() };
        self.request(Request::Transfer { payload, resume: None });
    }

    pub(crate) fn request(&mut self, request: Request) {
        self.association.handle(self.now, Input::Request(request));
        self.drain();
    }

    /// Our responder once more, after this association was lost, with what it left behind.
    pub(crate) fn after_loss(mut self, cut: Cut) -> Memory {
        let mut memory = Memory::responder(cut);
        memory.user.lost = self.association.take_interrupted();
        assert!(memory.user.lost.is_some(), "nothing is left of the transfer");
        memory.user.receiving = self.user.receiving;
        memory
    }

    /// Events that begin so.
    pub(crate) fn count(&self, event: &str) -> usize {
        self.user.events.iter().filter(|e| e.starts_with(event)).count()
    }

    fn feed(&mut self, octets: &[u8]) {
        if !octets.is_empty() && !self.closed {
            self.association.handle(self.now, Input::Bytes(octets));
            self.drain();
        }
    }

    fn drain(&mut self) {
        let mut requests = VecDeque::new();
        loop {
            while let Some(output) = self.association.poll() {
                match output {
                    Output::Send(octets) => self.out.extend_from_slice(&octets),
                    Output::Close => self.closed = true,
                    Output::Indication(indication) => {
                        requests.extend(self.user.indication(indication));
                    }
                }
            }
            let Some(request) = requests.pop_front() else { return };
            self.association.handle(self.now, Input::Request(request));
        }
    }
}

impl User {
    fn indication(&mut self, indication: Indication) -> Option<Request> {
        let mut event = format!("{indication:?}");
        event.truncate(event.find([' ', '(', '{']).unwrap_or(event.len()));
        match indication {
            Indication::Open { bind, .. } => {
                let known = match self.foreign {
                    Some(foreign) => foreign.known_by.iter().all(|part| contains(&bind, part)),
                    None => {
                        contains(&bind, b"\x80\x08MTA-PEER")
                            && [b"\x16\x07lantern", b"\x04\x07lantern"]
                                .iter()
                                .any(|password| contains(&bind, *password))
                    }
                };
                self.events.push(event);
                let own = self.foreign.map_or(OUR_NAME, |foreign| foreign.own);
                return Some(if known {
                    Request::Accept { bind: Bytes::from_static(own) }
                } else {
                    // INTEGER authentication-error(2).
                    let bind_error = Some(Bytes::from_static(&[2, 1, 2]));
                    Request::Refuse { reason: RefuseReason::Bind, bind_error }
                });
            }
            Indication::RecoverAsked { reference, .. } => {
                self.events.push(event);
                if let Some(lost) = self.lost.take_if(|lost| lost.reference() == reference) {
                    return Some(Request::AcceptRecover(Some(lost)));
                }
                let reason = RefuseReason::CannotRecover;
                return Some(Request::Refuse { reason, bind_error: None });
            }
            Indication::Refused { reason, bind_error, .. } => {
                let bind_error = bind_error.map(|octets| octets.to_vec());
                self.events.push(format!("Refused {reason:?} {bind_error:?}"));
            }
            Indication::Aborted { reason, detail } => {
                self.events.push(format!("Aborted {reason:?} {detail}"));
            }
            Indication::TransferStart { .. } => {
                self.receiving.clear();
                self.events.push(event);
                return self.refuses.map(Request::TransferRefused);
            }
            Indication::Data { bytes, .. } => self.receiving.extend_from_slice(&bytes),
            Indication::Checkpoint { octets } => {
                self.events.push(event);
                return Some(Request::Stored { octets });
            }
            Indication::TransferEnd => {
                self.received.push(std::mem::take(&mut self.receiving));
                self.events.push(event);
                return Some(Request::TransferSecured);
            }
            Indication::NeedContent { offset, max } => {
                let from = usize::try_from(offset).unwrap();
                let to = self.content.len().min(from + max);
                return Some(Request::Content(Bytes::copy_from_slice(&self.content[from..to])));
            }
            _ => self.events.push(event),
        }
        None
    }
}

impl Wire for Memory {
    fn send(&mut self, octets: &[u8]) {
        let before = self.taken;
        self.taken += octets.len();
        match self.cut {
            Cut::No => self.feed(octets),
            Cut::Everywhere => octets.iter().for_each(|octet| self.feed(&[*octet])),
            Cut::After(at) => {
                let (first, second) = octets.split_at(at.saturating_sub(before).min(octets.len()));
                self.feed(first);
                self.feed(second);
            }
        }
    }

    fn receive(&mut self) -> Result<Option<Vec<u8>>, String> {
        if let [3, _, high, low, ..] = self.out[..] {
            let length = usize::from(u16::from_be_bytes([high, low]));
            if self.out.len() >= length {
                return Ok(Some(self.out.drain(..length).collect()));
            }
        }
        match (self.out.is_empty(), self.closed) {
            (true, true) => Ok(None),
            (true, false) => Err(format!("nothing; so far {:?}", self.user.events)),
            (false, _) => Err(format!("half a TPKT: {:02X?}", self.out)),
        }
    }

    fn is_quiet(&mut self) -> bool {
        self.out.is_empty()
    }

    fn close(&mut self) {
        self.association.handle(self.now, Input::Eof);
        self.drain();
    }
}
