//! The targets.

mod admin;
pub mod association;
mod ber;
mod capture;
pub mod checked;
mod files;
pub mod kept;
mod lower;
pub(crate) mod message;
pub mod network;
pub mod node;
mod packet;
pub mod segment;
mod upper;

use base::rng::Rng;

/// A target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, and that of its corpus.
    pub name: &'static str,
    /// The purpose of the target.
    pub about: &'static str,
    /// Takes any octets; panics where an invariant is broken.
    pub run: fn(&[u8]),
}

macro_rules! targets {
    ($($name:literal $run:path, $about:literal;)*) => {
        /// All targets, from the bottom of the stack to the top.
        pub const TARGETS: &[Target] = &[$(Target { name: $name, about: $about, run: $run }),*];
    };
}

targets! {
    "ber" ber::run, "reader and tokenizer agree; values are read or refused";
    "tpkt" lower::tpkt, "packets of a TCP stream, at any cut";
    "cotp" lower::cotp, "TPDUs of a TCP stream, at any cut";
    "session" lower::session, "SPDUs of a TSDU, at any cut";
    "presentation" upper::presentation, "a PPDU as user data of each SPDU that carries one";
    "acse" upper::acse, "an APDU in each PPDU that carries one";
    "rtse" upper::rtse, "an APDU while opening and within an activity";
    "rose" upper::rose, "an APDU on an open association, either end";
    "p1-responder" association::p1_responder, "what a peer sends that opened a P1 association";
    "p1-initiator" association::p1_initiator, "what a peer answers on a P1 association";
    "p3-responder" association::p3_responder, "what a user sends that opened a P3 association";
    "p3-initiator" association::p3_initiator, "what an MTA answers on a P3 association";
    "explain" lower::explained, "what a peer sends, in words, at any cut, without secrets";
    "apdu" message::p1::apdu, "an MTS-APDU, at any cut, and written again";
    "mta-bind" message::p1::mta_bind, "argument, result and error of the MTA bind";
    "p3-submission" message::p3::submission, "a message-submission argument, at any cut";
    "p3-delivery" message::p3::delivery, "a message-delivery argument, at any cut";
    "p3-operations" message::p3::operations, "the other arguments, results, errors and the bind of P3";
    "p7-arguments" message::p7::arguments, "arguments of P7 and its bind, filters evaluated";
    "p7-results" message::p7::results, "results and errors of P7, and of its bind";
    "address" message::address::run, "the text form of an O/R address";
    "cms" message::cms::run, "the security labels inside a signed content, at any cut";
    "p772" message::p772::content, "a content, at any cut";
    "peek" message::p772::peek, "the precedence of a content, from its first octets";
    "record" message::record::run, "a record of the durable queue";
    "mailbox" message::mailbox::run, "a record of a mailbox: an item, registrations, totals; a content's beginning";
    "node-p1" node::p1, "a whole MTA whose peer sends this, and which must go on";
    "node-p3" node::p3, "a whole MTA whose user sends this, and which must go on";
    "node-p7" node::p7, "a whole MTA whose user reads his mailbox with this, and which must go on";
    "node-initiator" node::initiator, "a whole MTA that calls a peer which answers this";
    "node-delivery" node::delivery, "a whole MTA with mail for the user who sends this";
    "node-conversation" node::conversation::run, "whole conversations with an MTA, on several connections: valid PDUs in any order";
    "kept" kept::run, "what a node that starts finds of transfers that were cut off";
    "recording" message::recording::run, "a recording of inputs, at any cut, its bodies and the passwords in its octets";
    "segment" segment::run, "a segment of the queue's log: it opens, and goes on";
    "admin" admin::run, "a line of the admin socket, either way";
    "config" files::config, "the configuration file";
    "users" files::users, "the users' file";
    "ios" files::ios, "a configuration of Cisco IOS, made a policy, written and read";
    "topology" network::topology, "a network's text, and packets through what it builds";
    "policy" network::policy, "a router's policy, and packets through what it builds";
    "gateway" network::gateway, "what comes in at either side of an IP crypto gateway";
    "frame" files::frame, "a frame of a recording, its mark read and cleared";
    "packet" packet::packet, "an IP packet, read, changed and divided by a router";
    "answers" packet::answers, "what a router answers to an IP packet";
    "capture" capture::file, "a capture file, at any cut, and what is found in it";
    "observed" capture::stream, "what a P1 peer sends, seen in a capture, at any cut and order";
}

/// The target of this name.
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|t| t.name == name)
}

/// `octets` cut into pieces; the cuts follow from the octets.
pub(crate) fn cut(octets: &[u8]) -> Vec<&[u8]> {
    let mut rng = Rng::new(crate::hash(octets));
    let most = match rng.below(3) {
        0 => 1,
        1 => 16,
        _ => octets.len().max(1) as u64,
    };
    let mut pieces = Vec::new();
    let mut rest = octets;
    while !rest.is_empty() {
        let size = 1 + rng.below(most) as usize;
        let (piece, after) = rest.split_at(size.min(rest.len()));
        pieces.push(piece);
        rest = after;
    }
    pieces
}
