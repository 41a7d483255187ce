//! What is masked in an element of BER, whose octets come in pieces.
//!
//! It goes octet by octet, and an octet stays only where the tables (`grammar`) have its
//! element as a harmless one. What they do not have is overwritten. Where the encoding cannot be read further the
//! scan is lost, and whoever runs it overwrites all of it that he still can.

use super::Masked;
use super::cipher::{Cipher, Progress};
use super::grammar::{self, Apdu, Is, Leaf, Rule};
use super::operation::{self, Argument};
use base::ber::{Header, Length, MAX_DEPTH, Tag, universal as u};

/// Encodings inside encodings that are read.
const MAX_INNER: usize = 3;
/// Longest header that is read, octets: a tag of one octet, and a length of up to four.
const MAX_HEADER: usize = 6;

/// The outcome of an element that the table does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unknown {
    /// Its contents are overwritten.
    Mask,
    /// The scan is lost.
    Lose,
}

/// What an open element is.
#[derive(Debug)]
pub(super) enum State {
    /// It has members.
    Group { rules: &'static [Rule], unknown: Unknown },
    /// A password in segments.
    Segments,
    /// A password, or a segment of one.
    Secret,
    /// A harmless value, of which the last octet was this.
    Clear { leaf: Leaf, last: u8, masks: bool },
    /// It is overwritten.
    Opaque,
    /// It stays.
    Pass,
    /// Its members stay, and so do theirs.
    PassGroup,
    /// It has an encoding, after so many octets.
    Inner(Box<Scan>, usize),
    /// A ROSE APDU with so many of its members, and the operation.
    Apdu { apdu: Apdu, members: usize, code: i64 },
    /// The INTEGER that is the operation of the APDU around it.
    Code(i64),
    /// The argument of an operation, in which passwords may be by their form.
    Argument(Argument),
}

/// The outcome of an element.
pub(super) enum Next {
    Open(State),
    /// No later octet matters.
    Passes,
    Lost,
}

#[derive(Debug)]
struct Frame {
    tag: Tag,
    /// Octets of contents left, or `None` for the indefinite form.
    left: Option<u64>,
    state: State,
}

/// Reads one element.
#[derive(Debug)]
pub(super) struct Scan {
    root: &'static [Rule],
    unknown: Unknown,
    inner: usize,
    frames: Vec<Frame>,
    header: Vec<u8>,
    progress: Progress,
    done: bool,
    lost: bool,
    /// No later octet matters.
    passes: bool,
}

impl Scan {
    /// User data of a CONNECT, an ACCEPT or a REFUSE.
    pub(super) fn of_bind() -> Scan {
        Scan::new(grammar::CONNECT, Unknown::Mask, 0)
    }

    /// User data of a DATA TRANSFER from a user.
    pub(super) fn of_data() -> Scan {
        Scan::new(grammar::DATA, Unknown::Lose, 0)
    }

    fn new(root: &'static [Rule], unknown: Unknown, inner: usize) -> Scan {
        Scan {
            root,
            unknown,
            inner,
            frames: Vec::new(),
            header: Vec::new(),
            progress: Progress::default(),
            done: false,
            lost: false,
            passes: false,
        }
    }

    /// Whether it cannot be read.
    pub(super) fn is_lost(&self) -> bool {
        self.lost
    }

    /// Whether the element has ended.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// Whether no later octet matters.
    pub(super) fn passes(&self) -> bool {
        self.passes
    }

    /// Reads the next octets; they are at `base` of what `masked` is about.
    pub(super) fn read(
        &mut self,
        octets: &[u8],
        base: usize,
        cipher: &Cipher,
        masked: &mut Masked,
    ) {
        let mut at = 0;
        while let Some(rest) = octets.get(at..).filter(|rest| !rest.is_empty()) {
            if self.lost || self.passes {
                return;
            }
            if self.done {
                // Octets behind the element.
                self.lost = true;
                return;
            }
            at += self.step(rest, base + at, cipher, masked);
            self.close();
        }
    }

    /// Takes some octets; gives how many.
    fn step(&mut self, rest: &[u8], at: usize, cipher: &Cipher, masked: &mut Masked) -> usize {
        let Some(frame) = self.frames.last_mut().filter(|frame| !frame.is_group()) else {
            if let Some(octet) = rest.first() {
                self.header_octet(*octet);
            }
            return 1;
        };
        let left =
            frame.left.map_or(usize::MAX, |left| usize::try_from(left).unwrap_or(usize::MAX));
        let data = rest.get(..left).unwrap_or(rest);
        let mut is_wrong = false;
        match &mut frame.state {
            State::Secret => {
                for (octet, at) in data.iter().zip(at..) {
                    masked.octet(at, cipher.mask(&mut self.progress, *octet));
                }
            }
            State::Clear { leaf, last, masks } => {
                for (octet, at) in data.iter().zip(at..) {
                    match leaf {
                        Leaf::Text => is_wrong |= !is_text(*octet),
                        Leaf::Oid => *masks |= !is_of_oid(*last, *octet),
                        Leaf::Number | Leaf::Selector => {}
                    }
                    if *masks || is_wrong {
                        masked.blank(at, 1);
                    }
                    *last = *octet;
                }
            }
            State::Code(code) => {
                for octet in data {
                    *code = code.wrapping_shl(8) | i64::from(*octet);
                }
            }
            State::Inner(scan, skip) => {
                let skipped = data.len().min(*skip);
                *skip -= skipped;
                scan.read(data.get(skipped..).unwrap_or_default(), at + skipped, cipher, masked);
                is_wrong = scan.lost;
                self.passes |= scan.passes;
            }
            State::Pass => {}
            _ => masked.blank(at, data.len()),
        }
        self.lost |= is_wrong;
        self.consume(data.len());
        data.len()
    }

    fn header_octet(&mut self, octet: u8) {
        self.header.push(octet);
        self.consume(1);
        // Octets of a password that are taken for a header shall be few.
        let is_long = octet & 0x1F == 0x1F && self.header.len() == 1;
        match Header::parse(&self.header) {
            Ok(None) if !is_long && self.header.len() < MAX_HEADER => {}
            Ok(Some(header)) if header.size <= MAX_HEADER && !is_long => {
                self.header.clear();
                self.begin(&header);
            }
            _ => self.lost = true,
        }
    }

    /// Counts octets against every open element of definite length.
    fn consume(&mut self, count: usize) {
        for frame in &mut self.frames {
            if let Some(left) = &mut frame.left {
                match left.checked_sub(count as u64) {
                    Some(rest) => *left = rest,
                    None => self.lost = true,
                }
            }
        }
    }

    /// Ends the elements that have no octets left.
    fn close(&mut self) {
        while self.frames.last().is_some_and(|frame| frame.left == Some(0)) && !self.lost {
            if !self.header.is_empty() {
                self.lost = true;
                return;
            }
            self.end();
        }
    }

    fn end(&mut self) {
        let Some(frame) = self.frames.pop() else { return };
        match frame.state {
            State::Inner(scan, _) => self.lost |= !scan.done,
            State::Code(value) => {
                if let Some(State::Apdu { code, .. }) = self.frames.last_mut().map(|f| &mut f.state)
                {
                    *code = value;
                }
            }
            _ => {}
        }
        self.done |= self.frames.is_empty();
    }

    fn begin(&mut self, header: &Header) {
        if header.is_end_of_contents() {
            return match self.frames.last() {
                Some(Frame { left: None, .. }) => self.end(),
                _ => self.lost = true,
            };
        }
        let left = match header.length {
            Length::Definite(length) => Some(length),
            Length::Indefinite => None,
        };
        let room = self.frames.iter().rev().find_map(|frame| frame.left);
        if self.frames.len() >= MAX_DEPTH || left.zip(room).is_some_and(|(left, room)| left > room)
        {
            self.lost = true;
            return;
        }
        let (around, inner) = (self.frames.last().map(|frame| frame.tag), self.inner);
        let next = match self.frames.last_mut().map(|frame| &mut frame.state) {
            None => known(self.root, Unknown::Lose, self.unknown, header, inner),
            Some(State::Group { rules, unknown }) => {
                known(rules, *unknown, *unknown, header, inner)
            }
            Some(State::Segments) => Next::Open(secret(header)),
            Some(State::Apdu { apdu, members, code }) => {
                operation::member(*apdu, members, *code, header)
            }
            Some(State::Argument(argument)) => Next::Open(argument.member(around, header)),
            Some(State::PassGroup) => Next::Open(pass(header)),
            Some(_) => Next::Lost,
        };
        let is_segment = matches!(self.frames.last(), Some(Frame { state: State::Segments, .. }));
        match next {
            Next::Open(state) => {
                if !is_segment {
                    self.progress = Progress::default();
                }
                self.frames.push(Frame { tag: header.tag, left, state });
                self.close();
            }
            Next::Passes => self.passes = true,
            Next::Lost => self.lost = true,
        }
    }
}

impl Frame {
    /// Whether its contents are read as elements.
    fn is_group(&self) -> bool {
        match self.state {
            State::Group { .. } | State::Segments | State::PassGroup => true,
            State::Apdu { .. } | State::Argument(_) => true,
            State::Secret | State::Clear { .. } | State::Opaque => false,
            State::Pass | State::Inner(..) | State::Code(_) => false,
        }
    }
}

/// What an element is of which the place has this table.
fn known(
    rules: &'static [Rule],
    otherwise: Unknown,
    inside: Unknown,
    header: &Header,
    inner: usize,
) -> Next {
    for rule in rules.iter().filter(|rule| rule.tag == header.tag) {
        let state = match (rule.is, header.constructed) {
            (Is::Group(rules), true) => State::Group { rules, unknown: inside },
            (Is::Clear(leaf), false) if is_within(header, leaf.most()) => {
                State::Clear { leaf, last: 0, masks: false }
            }
            (Is::Secret, _) => secret(header),
            (Is::Inner(rules, skip), false) if inner < MAX_INNER => {
                State::Inner(Box::new(Scan::new(rules, inside, inner + 1)), skip)
            }
            (Is::Apdu(apdu), true) => State::Apdu { apdu, members: 0, code: 0 },
            _ => continue,
        };
        return Next::Open(state);
    }
    match otherwise {
        Unknown::Mask => Next::Open(masked(header)),
        Unknown::Lose => Next::Lost,
    }
}

/// Whether an element is not longer than this.
pub(super) fn is_within(header: &Header, most: u64) -> bool {
    matches!(header.length, Length::Definite(length) if length <= most)
}

/// An element that is overwritten; of one of the indefinite form the headers stay.
pub(super) fn masked(header: &Header) -> State {
    match header.length {
        Length::Definite(_) => State::Opaque,
        Length::Indefinite => State::Group { rules: &[], unknown: Unknown::Mask },
    }
}

/// An element that stays.
pub(super) fn pass(header: &Header) -> State {
    match header.length {
        Length::Definite(_) => State::Pass,
        Length::Indefinite => State::PassGroup,
    }
}

/// A password, or a segment of one. Nothing else is known where one is.
pub(super) fn secret(header: &Header) -> State {
    match (is_string(header.tag), header.constructed) {
        (true, false) => State::Secret,
        (true, true) => State::Segments,
        (false, _) => masked(header),
    }
}

/// The types of which a password is.
pub(super) fn is_string(tag: Tag) -> bool {
    tag == u::IA5_STRING || tag == u::OCTET_STRING
}

/// Whether an octet is one of a name. The header of an element that is taken for a part of a name has others.
fn is_text(octet: u8) -> bool {
    octet >= 0x80 || (0x20..0x7F).contains(&octet)
}

/// Whether an octet is one of an object identifier, and not of a text: arcs of the field are small or long.
fn is_of_oid(last: u8, octet: u8) -> bool {
    // The first one: 1.2, 1.3, 2.1, 2.2, 2.5, 2.6, 2.16. An arc of 0 is before few.
    let is_first = last == 0 && matches!(octet, 0x2A | 0x2B | 0x51 | 0x52 | 0x55 | 0x56 | 0x60);
    is_first || last >= 0x80 || !(0x20..0x7F).contains(&octet)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_identifiers_of_the_field_stay_and_texts_do_not() {
        let is_shown = |octets: &[u8]| {
            let before = std::iter::once(&0).chain(octets);
            before.zip(octets).all(|(last, octet)| is_of_oid(*last, *octet))
        };
        // X.400, NATO 1.3.26.0.4406, MIXER, BER.
        for oid in [
            &[0x56, 0, 1, 6][..],
            &[0x2B, 0x1A, 0, 0xA2, 0x36, 0, 4],
            &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D],
            &[0x51, 1],
        ] {
            assert!(is_shown(oid), "{oid:02x?}");
        }
        for text in [&b"horse"[..], b"VV", b"Up"] {
            assert!(!is_shown(text));
        }
    }
}
