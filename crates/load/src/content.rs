//! The canned content of all messages of a run, and the check of what arrives.

use anyhow::{Context, Result, bail};
use base::Precedence;
use bytes::Bytes;
use p1::names::ORName;
use p772::{Charset, ContentBuilder, Heading, IpmIdentifier, Military, MmhsPrecedence, PartForm};

/// The text repeats this line of 80 octets.
const LINE: &[u8; 80] =
    b"THE QUICK BROWN FOX JUMPS OVER THE LAZY DOG 1234567890 THIS IS A TEST MESSAGE.\r\n";

/// A military message (P772) with a text of a given size, the same for all submissions of a run:
/// what tells them apart is the content identifier of the envelope.
#[derive(Clone, Debug)]
pub(crate) struct Canned {
    octets: Bytes,
    /// Its precedence, for the envelope.
    pub(crate) precedence: Precedence,
}

impl Canned {
    /// A content with so many octets of text.
    ///
    /// # Errors
    /// The heading cannot be written.
    pub(crate) fn new(originator: &ORName, precedence: Precedence, size: usize) -> Result<Canned> {
        let heading = Heading {
            this_ipm: IpmIdentifier { user: Some(originator.clone()), local: "LOAD".to_owned() },
            originator: Some(originator.clone().into()),
            subject: Some(format!("{size} octets")),
            military: Military {
                primary_precedence: Some(MmhsPrecedence::from(precedence)),
                ..Military::default()
            },
            ..Heading::default()
        };
        let builder = ContentBuilder::new(&heading).context("the heading")?;
        let framing = builder.finish_with(PartForm::Text(Charset::Ascii), size as u64);
        let mut octets = framing.head;
        octets.extend(LINE.iter().cycle().take(size));
        Ok(Canned { octets: octets.into(), precedence })
    }

    /// Octets of the whole content.
    pub(crate) fn len(&self) -> usize {
        self.octets.len()
    }

    /// Up to `max` octets from `offset` on.
    pub(crate) fn piece(&self, offset: u64, max: usize) -> Bytes {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.len());
        self.octets.slice(start..start.saturating_add(max).min(self.len()))
    }

    /// Whether these octets are those from `offset` on.
    ///
    /// # Errors
    /// Where they differ.
    pub(crate) fn check(&self, offset: usize, arrived: &[u8]) -> Result<()> {
        match self.octets.get(offset..offset.saturating_add(arrived.len())) {
            Some(sent) if sent == arrived => Ok(()),
            _ => bail!("what was delivered differs from what was submitted, after octet {offset}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use p772::{ContentParser, Event};

    #[test]
    fn it_is_a_content_of_its_precedence_and_size_and_every_change_is_seen() {
        let originator: ORName = "/C=IT/ADMD=NET/S=OPS".parse().unwrap();
        let canned = Canned::new(&originator, Precedence::Flash, 1_000).unwrap();
        let whole = canned.piece(0, usize::MAX);
        assert_eq!(
            (canned.piece(7, 9), canned.piece(2_000, 1)),
            (whole.slice(7..16), Bytes::new())
        );
        let (mut parser, mut rest) = (ContentParser::new(), &whole[..]);
        let (mut precedence, mut size) = (None, 0);
        while let Some(event) = parser.next(&mut rest).unwrap() {
            match event {
                Event::Heading(h) => precedence = h.military.primary_precedence,
                Event::Data(data) => size += data.len(),
                _ => {}
            }
        }
        assert_eq!((precedence, size), (Some(MmhsPrecedence::from(Precedence::Flash)), 1_000));
        canned.check(0, &whole).unwrap();
        canned.check(500, &whole[500..]).unwrap();
        assert!(canned.check(0, &whole[1..]).is_err() && canned.check(1, &whole).is_err());
    }
}
