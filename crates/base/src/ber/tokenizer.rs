use super::{Fault, Header, Length, MAX_DEPTH, MAX_HEADER_OCTETS};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// What a [`Tokenizer`] accepts.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Limits {
    /// Deepest nesting.
    pub depth: usize,
    /// Most elements.
    pub elements: u64,
    /// Most octets from the first header to the end of the outermost element.
    pub octets: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { depth: MAX_DEPTH, elements: 1 << 24, octets: 1 << 40 }
    }
}

/// One step of an encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    /// An element begins; `depth` 0 is the outermost.
    Begin {
        /// Its header.
        header: Header,
        /// How many elements are open around it.
        depth: usize,
    },
    /// Contents of the primitive element that is open, as they arrive; never empty.
    Data(&'a [u8]),
    /// The element that is open ends.
    End {
        /// As in its `Begin`.
        depth: usize,
    },
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Frame {
    /// Octets of contents left, or `None` for the indefinite form.
    left: Option<u64>,
    constructed: bool,
    /// Elements of the indefinite form that are open inside and were passed over.
    passed: u64,
}

/// An incremental reader: takes any slice of an encoding and gives its tokens as far as they are
/// known, holding nothing but an unfinished header and a counter for each open element.
///
/// Cutting the input at any octet gives the same tokens, but for how `Data` is divided.
/// After the outermost element ended, [`Tokenizer::next`] gives `None` and leaves what follows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tokenizer {
    frames: SmallVec<[Frame; 8]>,
    header: SmallVec<[u8; MAX_HEADER_OCTETS]>,
    limits: Limits,
    elements: u64,
    octets: u64,
    done: bool,
}

impl Tokenizer {
    /// For one element and all that is in it.
    pub fn new(limits: Limits) -> Tokenizer {
        Tokenizer {
            frames: SmallVec::new(),
            header: SmallVec::new(),
            limits,
            elements: 0,
            octets: 0,
            done: false,
        }
    }

    /// Whether the outermost element has ended.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Whether nothing was taken yet.
    pub fn is_fresh(&self) -> bool {
        self.octets == 0
    }

    /// Octets taken so far.
    pub fn offset(&self) -> u64 {
        self.octets
    }

    /// The next token, taking what it needs from the front of `input`; `None` where `input` is used
    /// up or the outermost element has ended.
    ///
    /// # Errors
    /// Malformed headers, an element longer than the one around it, or a limit passed. The
    /// tokenizer is of no use afterwards.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Token<'a>>, Fault> {
        self.step(input, None)
    }

    /// As [`Tokenizer::next`], but what stands in elements deeper than `depth` is passed over: it is
    /// neither looked at nor counted against the limit on nesting, and costs no memory however deep
    /// it nests. An element at `depth` + 1 with a definite length has its octets as one `Data`, even
    /// if it is constructed; of one with the indefinite length only the ends inside are counted.
    ///
    /// The depth may change between calls only while no element deeper than it is open.
    ///
    /// # Errors
    /// As [`Tokenizer::next`].
    pub fn next_passing<'a>(
        &mut self,
        depth: usize,
        input: &mut &'a [u8],
    ) -> Result<Option<Token<'a>>, Fault> {
        self.step(input, Some(depth))
    }

    fn step<'a>(
        &mut self,
        input: &mut &'a [u8],
        pass: Option<usize>,
    ) -> Result<Option<Token<'a>>, Fault> {
        if self.done {
            return Ok(None);
        }
        match self.frames.last() {
            Some(Frame { left: Some(0), .. }) => return Ok(Some(self.end())),
            Some(Frame { left: Some(left), constructed: false, .. }) => {
                let take = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
                let Some((data, rest)) = input.split_at_checked(take) else { return Ok(None) };
                if data.is_empty() {
                    return Ok(None);
                }
                *input = rest;
                self.consume(take as u64)?;
                return Ok(Some(Token::Data(data)));
            }
            _ => {}
        }
        let Some(header) = self.take_header(input)? else { return Ok(None) };
        self.begin(header, pass).map(Some)
    }

    fn take_header(&mut self, input: &mut &[u8]) -> Result<Option<Header>, Fault> {
        if self.header.is_empty()
            && let Some(header) = Header::parse(input)?
        {
            *input = input.get(header.size..).unwrap_or_default();
            return Ok(Some(header));
        }
        while let Some((&b, rest)) = input.split_first() {
            *input = rest;
            self.header.push(b);
            if let Some(header) = Header::parse(&self.header)? {
                self.header.clear();
                return Ok(Some(header));
            }
        }
        Ok(None)
    }

    fn begin<'a>(&mut self, header: Header, pass: Option<usize>) -> Result<Token<'a>, Fault> {
        self.consume(header.size as u64)?;
        let depth = self.frames.len();
        let passes = pass.is_some_and(|outer| depth > outer);
        if header.is_end_of_contents() {
            return match self.frames.last_mut() {
                Some(Frame { left: None, passed: passed @ 1.., .. }) => {
                    *passed -= 1;
                    Ok(Token::End { depth })
                }
                Some(Frame { left: None, .. }) => Ok(self.end()),
                _ => Err(Fault::UnexpectedEnd),
            };
        }
        // Inside an element that is passed over, of the indefinite form.
        if let Some(frame) = self.frames.last_mut()
            && pass.is_some_and(|outer| depth > outer + 1)
            && header.length == Length::Indefinite
        {
            frame.passed += 1;
            return Ok(Token::Begin { header, depth });
        }
        if depth >= self.limits.depth {
            return Err(Fault::TooDeep(self.limits.depth));
        }
        self.elements += 1;
        if self.elements > self.limits.elements {
            return Err(Fault::TooMany(self.limits.elements));
        }
        let left = match header.length {
            Length::Definite(n) => {
                if let Some(room) = self.room()
                    && n > room
                {
                    return Err(Fault::Truncated);
                }
                if n > self.limits.octets.saturating_sub(self.octets) {
                    return Err(Fault::TooLong(self.limits.octets));
                }
                Some(n)
            }
            Length::Indefinite => None,
        };
        let constructed = header.constructed && (left.is_none() || !passes);
        self.frames.push(Frame { left, constructed, passed: 0 });
        Ok(Token::Begin { header, depth })
    }

    /// Octets left in the innermost open element of definite length.
    fn room(&self) -> Option<u64> {
        self.frames.iter().rev().find_map(|f| f.left)
    }

    /// Counts octets against every open element of definite length.
    fn consume(&mut self, n: u64) -> Result<(), Fault> {
        self.octets = self.octets.saturating_add(n);
        if self.octets > self.limits.octets {
            return Err(Fault::TooLong(self.limits.octets));
        }
        for frame in &mut self.frames {
            if let Some(left) = &mut frame.left {
                *left = left.checked_sub(n).ok_or(Fault::Truncated)?;
            }
        }
        Ok(())
    }

    fn end<'a>(&mut self) -> Token<'a> {
        self.frames.pop();
        self.done = self.frames.is_empty();
        Token::End { depth: self.frames.len() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// All tokens of `input`, its slices put together.
    fn tokens(pieces: &[&[u8]]) -> Result<Vec<(String, Vec<u8>)>, Fault> {
        let mut t = Tokenizer::new(Limits::default());
        let mut out: Vec<(String, Vec<u8>)> = Vec::new();
        for piece in pieces {
            let mut rest = *piece;
            while let Some(token) = t.next(&mut rest)? {
                match (token, out.last_mut()) {
                    (Token::Data(d), Some((kind, data))) if kind == "data" => {
                        data.extend_from_slice(d);
                    }
                    (Token::Data(d), _) => out.push(("data".into(), d.to_vec())),
                    (Token::Begin { header, depth }, _) => {
                        out.push((format!("begin {} {depth}", header.tag), vec![]));
                    }
                    (Token::End { depth }, _) => out.push((format!("end {depth}"), vec![])),
                }
            }
        }
        Ok(out)
    }

    const SAMPLE: [u8; 24] = [
        0x30, 0x80, 0x02, 0x01, 0x05, 0x24, 0x80, 0x04, 0x02, b'a', b'b', 0x04, 0x00, 0, 0, 0xa1,
        0x04, 0x30, 0x02, 0x05, 0x00, 0, 0, 0x99,
    ];

    #[test]
    fn every_cut_gives_the_same_tokens() {
        let whole = tokens(&[&SAMPLE]).unwrap();
        assert_eq!(whole.last().unwrap().0, "end 0");
        for cut in 0..SAMPLE.len() {
            assert_eq!(tokens(&[&SAMPLE[..cut], &SAMPLE[cut..]]).unwrap(), whole, "cut at {cut}");
        }
        let single: Vec<&[u8]> = SAMPLE.chunks(1).collect();
        assert_eq!(tokens(&single).unwrap(), whole);
    }

    #[test]
    fn limits_hold() {
        let bomb = [0x30, 0x80].repeat(100);
        assert_eq!(tokens(&[&bomb]), Err(Fault::TooDeep(MAX_DEPTH)));
        assert_eq!(tokens(&[&[0x30, 2, 0x04, 1]]), Err(Fault::Truncated));
        assert_eq!(tokens(&[&[0x30, 2, 0, 0]]), Err(Fault::UnexpectedEnd));
        let huge = [0x24, 0x88, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        assert!(matches!(tokens(&[&huge]), Err(Fault::TooLong(_))));
    }

    /// The octets inside the element at `depth` as [`Tokenizer::next_passing`] shows them, and its end.
    fn passed(depth: usize, pieces: &[&[u8]]) -> Result<(usize, bool), Fault> {
        let mut t = Tokenizer::new(Limits::default());
        let (mut data, mut ended) = (0, false);
        for piece in pieces {
            let mut rest = *piece;
            while let Some(token) = t.next_passing(depth, &mut rest)? {
                match token {
                    Token::Data(octets) => data += octets.len(),
                    Token::End { depth: d } => ended |= d == depth,
                    Token::Begin { .. } => {}
                }
            }
            assert!(t.frames.len() <= depth + 3, "{} elements are open", t.frames.len());
        }
        Ok((data, ended))
    }

    #[test]
    fn what_is_passed_over_may_nest_as_it_likes() {
        // [0] { indefinite, 5,000 deep }, and the same of definite lengths.
        let deep = 5_000;
        let mut indefinite = vec![0xa0, 0x80];
        indefinite.extend([0x30, 0x80].repeat(deep));
        indefinite.extend([0, 0].repeat(deep + 1));
        assert_eq!(tokens(&[&indefinite]), Err(Fault::TooDeep(MAX_DEPTH)));
        assert_eq!(passed(0, &[&indefinite]), Ok((0, true)));
        let (all, last) = (indefinite.len(), indefinite.len() - 1);
        assert_eq!(passed(0, &[&indefinite[..last]]), Ok((0, false)));
        for cut in (0..all).step_by(997) {
            assert_eq!(passed(0, &[&indefinite[..cut], &indefinite[cut..]]), Ok((0, true)));
        }
        let definite: Vec<u8> = (0..40).rev().flat_map(|n: u8| [0x30, n * 2]).collect();
        let whole = [&[0xa0, 80][..], &definite].concat();
        assert_eq!(passed(0, &[&whole]), Ok((78, true)));
        // One of each in turn: the octets of the definite are not looked at.
        let mixed =
            [0xa0, 0x80, 0x30, 0x80, 0x30, 3, 0x30, 0x80, 0xff, 0x30, 0x80, 0, 0, 0, 0, 0, 0];
        assert_eq!(passed(0, &[&mixed]), Ok((3, true)));
        assert_eq!(passed(0, &[&[0xa0, 2, 0x30, 1]]), Err(Fault::Truncated));
        assert_eq!(passed(0, &[&[0xa0, 4, 0x30, 0x80, 0, 0]]), Ok((0, true)));
        assert_eq!(passed(0, &[&[0xa0, 2, 0x30, 0x80, 0, 0]]), Err(Fault::Truncated));
    }

    proptest! {
        #[test]
        fn any_octets_at_any_cut_agree(
            bytes in proptest::collection::vec(prop_oneof![any::<u8>(), Just(0x30), Just(0x80), Just(0u8), Just(4u8)], 0..60),
            cut in 0usize..60,
        ) {
            let cut = cut.min(bytes.len());
            let (a, b) = (tokens(&[&bytes]), tokens(&[&bytes[..cut], &bytes[cut..]]));
            prop_assert_eq!(a, b);
            for depth in 0..2 {
                let (a, b) = (passed(depth, &[&bytes]), passed(depth, &[&bytes[..cut], &bytes[cut..]]));
                prop_assert_eq!(a, b);
            }
        }
    }
}
