//! Passwords in the operations that a user invokes: change-credentials, and register-MS with one in it.
//!
//! An operation is let pass only as one that is known. An octet that is wrong may make another operation of a change
//! of credentials: so these are found by the number of the operation and by their form, and one of the two is enough.

use super::grammar::{Apdu, CHANGE, CHANGE_IN_REGISTER};
use super::scan::{Next, State, Unknown, is_string, is_within, masked, pass, secret};
use base::ber::{Class, Header, Tag, universal as u};
use p1::p3::operation::{CANCEL_DEFERRED_DELIVERY, CHANGE_CREDENTIALS, REGISTER};
use p7::operation::{MODIFY, REGISTER_MS, SUMMARIZE};

/// change-credentials of a register-MS.
const CHANGE_TAG: Tag = Tag::context(4);
/// Most octets of an INTEGER here.
const MAX_INTEGER: u64 = 4;

/// A place in an argument.
#[derive(Clone, Copy, Debug)]
pub(super) struct Argument {
    /// It is that of a register-MS: passwords may be at any depth.
    registers: bool,
    depth: usize,
}

/// The next member of a ROSE APDU (X.229 clause 9).
pub(super) fn member(apdu: Apdu, members: &mut usize, code: i64, header: &Header) -> Next {
    let number = *members;
    *members += 1;
    let is_integer = !header.constructed && is_within(header, MAX_INTEGER);
    let state = match (apdu, number, header.tag) {
        (_, 0, u::INTEGER) if is_integer => State::Pass,
        (Apdu::Reject, 0, u::NULL) if is_within(header, 0) => State::Pass,
        (Apdu::Invoke, 1, u::INTEGER) if is_integer => State::Code(0),
        // linked-ID.
        (Apdu::Invoke, 1, _) if is_integer && header.tag == Tag::context(0) => {
            *members = number;
            State::Pass
        }
        (Apdu::Invoke, 2, _) => return argument(code, header),
        (Apdu::Result, 1, u::SEQUENCE) if header.constructed => return Next::Passes,
        (Apdu::Error, 1, u::INTEGER) if is_integer => State::Pass,
        (Apdu::Error, 2, _) => return other(header),
        (Apdu::Reject, 1, _) if is_integer && header.tag.class == Class::Context => State::Pass,
        _ => return Next::Lost,
    };
    Next::Open(state)
}

fn argument(code: i64, header: &Header) -> Next {
    let is_set = header.tag == u::SET && header.constructed;
    match code {
        CHANGE_CREDENTIALS if is_set => {
            Next::Open(State::Group { rules: CHANGE, unknown: Unknown::Mask })
        }
        REGISTER_MS if is_set => {
            Next::Open(State::Argument(Argument { registers: true, depth: 1 }))
        }
        CHANGE_CREDENTIALS | REGISTER_MS => Next::Open(masked(header)),
        REGISTER..=CANCEL_DEFERRED_DELIVERY | SUMMARIZE..=MODIFY => other(header),
        _ => Next::Lost,
    }
}

/// An argument of another operation, or the parameter of an error.
fn other(header: &Header) -> Next {
    match header.tag == u::SET && header.constructed {
        true => Next::Open(State::Argument(Argument { registers: false, depth: 1 })),
        false => Next::Passes,
    }
}

impl Argument {
    /// A member of the element of this tag.
    pub(super) fn member(self, around: Option<Tag>, header: &Header) -> State {
        let Argument { registers, depth } = self;
        let in_credentials = around.is_some_and(is_credentials);
        let is_of_context = header.tag.class == Class::Context;
        if is_string(header.tag) && in_credentials && (registers || depth == 2 || depth == 4) {
            return secret(header);
        }
        let deeper = State::Argument(Argument { registers, depth: depth + 1 });
        match (registers, depth) {
            (true, 1) if !header.constructed || !is_of_context => masked(header),
            (true, 1) if header.tag == CHANGE_TAG => {
                State::Group { rules: CHANGE_IN_REGISTER, unknown: Unknown::Mask }
            }
            (true, _) if header.constructed => deeper,
            (false, 1) if header.constructed && is_of_context => deeper,
            (false, 2) if header.constructed && !is_of_context => deeper,
            (false, 3) if header.constructed && is_credentials(header.tag) => deeper,
            _ => pass(header),
        }
    }
}

/// old-credentials and new-credentials.
fn is_credentials(tag: Tag) -> bool {
    tag == Tag::context(0) || tag == Tag::context(1)
}
