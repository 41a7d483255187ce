//! Valid inputs, from which damage starts: made by our own encoders, set down by hand from what
//! peers send, and taken from the vectors of the end-to-end tests.

pub mod ber;
pub mod files;
pub mod network;
pub mod p1;
pub mod p3;
pub mod p7;
pub mod p772;
pub mod packets;
pub mod stack;
pub mod vectors;

/// A name, which is that of its file, and the octets.
pub type Seed = (String, Vec<u8>);

/// The seeds of a target.
pub fn of_target(target: &str) -> Vec<Seed> {
    match target {
        "ber" => ber::elements(),
        "tpkt" | "cotp" => stack::packets(),
        "session" => stack::spdus(),
        "presentation" => stack::ppdus(),
        "acse" => stack::acse(),
        "rtse" => stack::rtse(),
        "rose" => stack::rose(),
        "p1-responder" | "observed" => [stack::p1_responder(), vectors::p1_responder()].concat(),
        "explain" => [
            stack::packets(),
            stack::p1_responder(),
            stack::p1_initiator(),
            vectors::p1_responder(),
        ]
        .concat(),
        "p1-initiator" => [stack::p1_initiator(), vectors::p1_initiator()].concat(),
        "p3-responder" => stack::p3_responder(),
        "p3-initiator" => stack::p3_initiator(),
        "apdu" => p1::apdus(),
        "mta-bind" => p1::binds(),
        "p3-submission" => p3::submissions(),
        "p3-delivery" => p3::deliveries(),
        "p3-operations" => p3::operations(),
        "p7-arguments" => [p7::arguments(), vectors::p7(&["argument"])].concat(),
        "p7-results" => [p7::results(), vectors::p7(&["result", "error"])].concat(),
        "address" => p1::addresses(),
        "cms" => p772::signed(),
        "p772" | "peek" => p772::contents(),
        "record" => p1::records(),
        "mailbox" => named(&crate::targets::message::mailbox::seeds()),
        "node-p1" => [p1::node(), vectors::node()].concat(),
        "node-p3" => p3::node(),
        "node-p7" => p7::node(),
        "node-initiator" => {
            let good = named(&[("good", crate::targets::node::called())]);
            [good, stack::p1_initiator(), vectors::p1_initiator()].concat()
        }
        "node-delivery" => named(&[("good", crate::targets::node::fetched())]),
        "node-conversation" => crate::targets::node::conversation::seeds(),
        "kept" => named(&crate::targets::kept::seeds()),
        "recording" => {
            let made = named(&crate::targets::message::recording::seeds());
            [made, stack::p1_responder(), stack::p3_responder()].concat()
        }
        "segment" => named(&crate::targets::segment::seeds()),
        "admin" => files::admin(),
        "config" => files::configs(),
        "users" => files::users(),
        "ios" => files::ios(),
        "topology" => network::topologies(),
        "policy" => network::policies(),
        "gateway" => network::packets(),
        "frame" => files::frames(),
        "capture" => files::captures(),
        "packet" | "answers" => packets::packets(),
        _ => Vec::new(),
    }
}

fn named(seeds: &[(&str, Vec<u8>)]) -> Vec<Seed> {
    seeds.iter().map(|(name, octets)| ((*name).to_owned(), octets.clone())).collect()
}

fn hex(text: &str) -> Vec<u8> {
    crate::hex::decode(text).expect("hexadecimal text")
}

fn written(write: impl FnOnce(&mut base::ber::Writer)) -> Vec<u8> {
    let mut w = base::ber::Writer::new();
    write(&mut w);
    w.into_vec()
}
