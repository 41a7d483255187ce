//! The passwords in an element of BER, whose octets come in pieces.

use super::Masked;
use super::cipher::{Cipher, Progress};
use base::ber::{Class, Limits, MAX_DEPTH, Tag, Token, Tokenizer, universal as u};
use p1::p3::operation::CHANGE_CREDENTIALS;
use p7::operation::REGISTER_MS;

/// Encodings inside encodings that are read.
const MAX_INNER: usize = 3;

/// user-information of AARQ and AARE, authentication-value of one and the other (X.227).
const USER_INFORMATION: Tag = Tag::context(30);
const AUTHENTICATION: [Tag; 2] = [Tag::context(12), Tag::context(10)];
/// change-credentials of a register-MS.
const CHANGE: Tag = Tag::context(4);

/// What an element is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// User data of a CONNECT or ACCEPT.
    Bind,
    /// User data of a DATA TRANSFER.
    Operation,
}

/// What is done with the primitive element that is open.
#[derive(Debug)]
enum Open {
    Nothing,
    /// It is a password, or a segment of one.
    Secret,
    /// It is an INTEGER of an operation.
    Number(i64),
    /// It is an encoding; of a BIT STRING without its first octet.
    Inner(Box<Scan>, usize),
}

/// Reads one element.
#[derive(Debug)]
pub(super) struct Scan {
    what: What,
    tokens: Tokenizer,
    /// The tags around the next element, outermost first; an encoding inside another has those of both.
    path: Vec<Tag>,
    outer: usize,
    inner: usize,
    open: Open,
    progress: Progress,
    /// INTEGERs of an operation: its invoke-id and its code.
    numbers: Vec<i64>,
    done: bool,
    lost: bool,
}

impl Scan {
    pub(super) fn new(what: What) -> Scan {
        Scan::inside(what, Vec::new(), 0)
    }

    fn inside(what: What, path: Vec<Tag>, inner: usize) -> Scan {
        Scan {
            what,
            tokens: Tokenizer::new(Limits::default()),
            outer: path.len(),
            path,
            inner,
            open: Open::Nothing,
            progress: Progress::default(),
            numbers: Vec::new(),
            done: false,
            lost: false,
        }
    }

    /// Whether no later octet of an operation matters.
    pub(super) fn is_done(&self) -> bool {
        self.done && self.what == What::Operation
    }

    /// Reads the next octets; they are at `base` of what `masked` is about.
    pub(super) fn read(
        &mut self,
        octets: &[u8],
        base: usize,
        cipher: &Cipher,
        masked: &mut Masked,
    ) {
        // Octet by octet: where a bind cannot be read further does not depend on how it was cut.
        let most = if self.what == What::Bind { 1 } else { octets.len().max(1) };
        for (piece, at) in octets.chunks(most).zip((base..).step_by(most)) {
            self.read_piece(piece, at, cipher, masked);
        }
    }

    fn read_piece(&mut self, octets: &[u8], base: usize, cipher: &Cipher, masked: &mut Masked) {
        let mut rest = octets;
        while !self.lost && !self.is_done() {
            match self.tokens.next(&mut rest) {
                Ok(None) => break,
                Err(_) => self.lost = true,
                Ok(Some(token)) => {
                    let after = base + octets.len() - rest.len();
                    self.token(&token, after, cipher, masked);
                }
            }
        }
        if (self.lost || self.tokens.is_done()) && self.what == What::Bind {
            // What follows is not a part of a bind that anybody could read.
            masked.blank(base + octets.len() - rest.len(), rest.len());
        }
    }

    /// Takes the next token, whose last octet is before `after`.
    fn token(&mut self, token: &Token<'_>, after: usize, cipher: &Cipher, masked: &mut Masked) {
        match token {
            Token::Begin { header, .. } => {
                self.open = if header.constructed { Open::Nothing } else { self.begin(header.tag) };
                if !is_string(header.tag) || !self.path.last().copied().is_some_and(is_string) {
                    self.progress = Progress::default();
                }
                self.path.push(header.tag);
                self.look_at_operation();
            }
            Token::Data(data) => {
                let at = after - data.len();
                match &mut self.open {
                    Open::Secret => {
                        for (octet, at) in data.iter().zip(at..) {
                            masked.octet(at, cipher.mask(&mut self.progress, *octet));
                        }
                    }
                    Open::Number(number) => {
                        for octet in *data {
                            *number = number.wrapping_shl(8) | i64::from(*octet);
                        }
                    }
                    Open::Inner(scan, skip) => {
                        let skipped = data.len().min(*skip);
                        *skip -= skipped;
                        let data = data.get(skipped..).unwrap_or_default();
                        scan.read(data, at + skipped, cipher, masked);
                    }
                    Open::Nothing => {}
                }
            }
            Token::End { depth } => {
                if let Open::Number(number) = self.open {
                    self.numbers.push(number);
                }
                self.open = Open::Nothing;
                self.path.truncate(self.outer + depth);
            }
        }
    }

    /// What a primitive element is: its tag is not in the path yet.
    fn begin(&self, tag: Tag) -> Open {
        let parent = self.path.last().copied();
        let holds_values = parent.is_some_and(|tag| tag == u::EXTERNAL || tag == u::SEQUENCE);
        if holds_values && (tag == Tag::context(1) || tag == Tag::context(2)) && self.is_value() {
            let mut path = self.path.clone();
            path.push(Tag::context(0));
            let deep = self.inner >= MAX_INNER || path.len() >= 2 * MAX_DEPTH;
            if deep {
                return Open::Secret;
            }
            let skip = usize::from(tag == Tag::context(2));
            return Open::Inner(Box::new(Scan::inside(self.what, path, self.inner + 1)), skip);
        }
        match self.what {
            What::Bind if self.is_credential(tag) => Open::Secret,
            What::Operation if self.is_changed_credential() => Open::Secret,
            What::Operation if tag == u::INTEGER && self.in_operation() => Open::Number(0),
            _ => Open::Nothing,
        }
    }

    /// Whether `[1]` or `[2]` here is a presentation data value: in a PDV-list of user data, or in an EXTERNAL.
    fn is_value(&self) -> bool {
        match self.path.as_slice() {
            [.., list, u::SEQUENCE] => *list == Tag::application(1),
            [.., last] => *last == u::EXTERNAL,
            [] => false,
        }
    }

    /// Whether a primitive element of a bind is a password, or may be one.
    fn is_credential(&self, tag: Tag) -> bool {
        let segments = self.path.iter().rev().take_while(|tag| is_string(**tag)).count();
        let around = self.path.get(..self.path.len() - segments).unwrap_or_default();
        let is_string = is_string(tag) || segments > 0;
        match around {
            // initiator-credentials of an MTA's bind.
            [.., a, b] if [*a, *b] == [Tag::context(1); 2] => true,
            // Those of a user's bind.
            [front @ .., u::SET, b]
                if *b == Tag::context(2) && front.contains(&USER_INFORMATION) =>
            {
                true
            }
            _ if AUTHENTICATION.iter().any(|value| is_in_acse(around, *value)) => true,
            // The name of a session connection, where one is recovered.
            [.., a, b]
                if *b == Tag::context(1) && (*a == Tag::context(2) || *a == Tag::context(3)) =>
            {
                false
            }
            // Nothing else in a bind is a string of these types.
            _ => is_string,
        }
    }

    /// Where the path is inside an invoke: the tags from its argument on.
    fn argument(&self) -> Option<&[Tag]> {
        let value =
            self.path.windows(2).position(|two| two == [Tag::context(0), Tag::context(1)])?;
        self.path.get(value + 2..)
    }

    fn in_operation(&self) -> bool {
        self.argument().is_some_and(<[Tag]>::is_empty) && self.numbers.len() < 2
    }

    /// Whether a primitive element of an operation is in credentials that are changed.
    fn is_changed_credential(&self) -> bool {
        let Some(argument) = self.argument() else { return false };
        match self.numbers.get(1) {
            Some(&CHANGE_CREDENTIALS) => argument.len() >= 2,
            Some(&REGISTER_MS) => argument.get(1).is_some_and(|member| *member == CHANGE),
            _ => false,
        }
    }

    /// Ends with the first element that shows that this is another operation than a change of credentials.
    fn look_at_operation(&mut self) {
        if self.what == What::Bind {
            return;
        }
        let is_value =
            self.path.len() >= 2 && self.path.get(self.path.len() - 2) == Some(&Tag::context(0));
        let last = self.path.last().copied();
        if self.argument().is_none() {
            // A result, an error or a reject.
            self.done = is_value && last.is_some_and(|tag| tag.class == Class::Context);
        } else if self.numbers.len() >= 2 {
            let code = self.numbers.get(1).copied();
            self.done = !matches!(code, Some(CHANGE_CREDENTIALS | REGISTER_MS));
        }
    }
}

/// Whether elements in `value` of an AARQ or AARE are around an element.
fn is_in_acse(around: &[Tag], value: Tag) -> bool {
    around.windows(2).any(|two| match two {
        [apdu, of] => {
            *of == value && (*apdu == Tag::application(0) || *apdu == Tag::application(1))
        }
        _ => false,
    })
}

/// The types of which a simple password is.
fn is_string(tag: Tag) -> bool {
    tag == u::IA5_STRING || tag == u::OCTET_STRING
}
