//! Users of the message store that go wrong.

mod bind;
mod retrieval;
mod rose;

use super::case::{Case, Encounter, Hostile, play};
use super::octets::*;
use fuzz::targets::node;
use std::time::Duration;

/// What opens a P7 association: recorded, TPKT by TPKT.
pub(crate) fn opening() -> Vec<Vec<u8>> {
    let mut user = node::reader(&[]);
    user.stay();
    let answer = node::with_items().converse(2, &mut user);
    super::packets(&answer)
}

/// The context of submission, of retrieval, of administration.
const MSSE: u8 = 5;
const MRSE: u8 = 7;
const MASE: u8 = 9;

/// RO-INVOKE in a context: identifier, operation, argument.
pub(super) fn invoke_in(context: u8, identifier: u8, operation: u8, argument: &[u8]) -> Vec<u8> {
    apdu(context, &tlv(0xa1, &[&[2, 1, identifier, 2, 1, operation], argument]))
}

/// RO-INVOKE of an operation of the retrieval port.
pub(super) fn invoke(identifier: u8, operation: u8, argument: &[u8]) -> Vec<u8> {
    invoke_in(MRSE, identifier, operation, argument)
}

fn apdu(context: u8, octets: &[u8]) -> Vec<u8> {
    data(&user_data(context, octets))
}

pub(super) const SUMMARIZE: u8 = 20;
pub(super) const LIST: u8 = 21;
pub(super) const FETCH: u8 = 22;
pub(super) const DELETE: u8 = 23;
pub(super) const REGISTER: u8 = 24;
const ALERT: u8 = 25;
const MODIFY: u8 = 26;

/// A list of everything.
pub(super) const ALL: [u8; 6] = [0x31, 4, 0xa1, 2, 0x31, 0];

/// A fetch of the item that is there.
pub(super) const FIRST: [u8; 7] = [0x31, 5, 0xa2, 3, 2, 1, 1];

pub(super) fn cases() -> Vec<Case> {
    [bind::cases(), rose::cases(), retrieval::cases()].into_iter().flatten().collect()
}

#[test]
fn users_of_the_message_store() {
    play(&bind::cases());
    play(&rose::cases());
}

#[test]
fn arguments_of_the_retrieval_port() {
    play(&retrieval::cases());
}

/// What a good user sends who lists his mailbox, fetches from it, and releases.
fn recorded() -> Vec<u8> {
    let all = [(LIST, ALL.to_vec()), (FETCH, FIRST.to_vec()), (SUMMARIZE, ALL.to_vec())];
    let units = all.map(|(operation, argument)| (i64::from(operation), argument.into()));
    let mut user = node::reader(&units);
    let sent = node::with_items().converse(2, &mut user);
    assert_eq!(user.count("Returned"), units.len(), "{:?}", user.observed);
    sent
}

/// Every prefix of an association, on a connection each, then the end of the connection or silence.
fn every_prefix(end: impl Fn(&mut Encounter)) {
    let stream = recorded();
    let mut encounter = Encounter::new(Hostile::Reader);
    for length in 0..=stream.len() {
        encounter.accept(2);
        encounter.send_by_packet(&stream[..length]);
        end(&mut encounter);
    }
    encounter.must_go_on();
}

#[test]
fn every_prefix_of_an_association_then_the_end() {
    every_prefix(|encounter| encounter.hang_up());
}

#[test]
fn every_prefix_of_an_association_then_silence() {
    every_prefix(|encounter| {
        encounter.site.wait(Duration::from_secs(150));
        if !encounter.is_closed() {
            // Bound, and between two operations: a user may be silent as long as he likes.
            encounter.hang_up();
        }
    });
}
