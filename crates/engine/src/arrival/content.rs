//! What is noted of a content while it is received: length, digest, its front, the labels inside it.

use crate::{Content, Engine};
use p1::apdu::MtsApduHead;
use p1::cms::SignedReader;
use p1::content_type::ContentType;
use serde::{Deserialize, Serialize};
use sha2::digest::common::hazmat::SerializableState as _;
use sha2::{Digest as _, Sha256};

/// What is noted of a content, from the first octets to the last. The octets themselves go elsewhere.
#[derive(Clone, Debug, Default)]
pub struct ContentNotes {
    length: u64,
    hasher: Sha256,
    peek: bool,
    prefix: Vec<u8>,
    signed: Option<SignedReader>,
}

/// How far a content has come, all but its front: for a receiver that goes on after the end of its process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ContentState {
    length: u64,
    hasher: Vec<u8>,
    signed: Option<SignedReader>,
}

impl ContentNotes {
    /// Of one that begins. `peek`: its front is kept for a look at the heading's precedence. `open`: it is
    /// opened for the labels inside.
    #[must_use]
    pub fn new(peek: bool, open: bool) -> ContentNotes {
        let signed = open.then(SignedReader::default);
        ContentNotes { peek, signed, ..ContentNotes::default() }
    }

    /// Takes its next octets.
    pub fn take(&mut self, octets: &[u8]) {
        self.length += octets.len() as u64;
        self.hasher.update(octets);
        if self.peek {
            let room = p772::PEEK_OCTETS.saturating_sub(self.prefix.len()).min(octets.len());
            self.prefix.extend_from_slice(octets.get(..room).unwrap_or_default());
        }
        if let Some(signed) = &mut self.signed {
            signed.take(octets);
        }
    }

    /// Octets so far.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Its front, where that is kept.
    #[must_use]
    pub fn front(&self) -> &[u8] {
        &self.prefix
    }

    /// Whether its front is kept.
    #[must_use]
    pub fn peeks(&self) -> bool {
        self.peek
    }

    /// Octets of memory that the labels inside it take.
    #[must_use]
    pub fn held(&self) -> usize {
        self.signed.as_ref().map_or(0, SignedReader::held)
    }

    /// The digest of what came so far.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        self.hasher.clone().finalize().into()
    }

    /// What is known of it as a whole; labels inside it only where its type is known.
    #[must_use]
    pub fn content(&self, content_type: Option<&ContentType>) -> Content {
        let labels = self.signed.as_ref().zip(content_type).map(|(signed, of)| signed.labels(of));
        Content {
            length: self.length,
            digest: self.digest(),
            prefix: self.prefix.clone().into(),
            labels: labels.unwrap_or_default(),
        }
    }

    /// How far it has come.
    #[must_use]
    pub fn state(&self) -> ContentState {
        ContentState {
            length: self.length,
            hasher: self.hasher.serialize().to_vec(),
            signed: self.signed.clone(),
        }
    }
}

/// The type of the content that comes with this, if it is a message.
#[must_use]
pub fn content_type(head: &MtsApduHead) -> Option<&ContentType> {
    match head {
        MtsApduHead::Message(envelope) => Some(&envelope.content_type),
        MtsApduHead::Probe(_) | MtsApduHead::Report(_) => None,
    }
}

impl Engine {
    /// For a content that begins to arrive: as much is noted of it as the configuration asks for.
    #[must_use]
    pub fn content_notes(&self) -> ContentNotes {
        ContentNotes::new(self.policy.peek_content, self.cleared.open_contents)
    }

    /// The same for one that an earlier run had begun to receive.
    ///
    /// # Errors
    /// As [`ContentState::resume`].
    pub fn resumed_notes(
        &self,
        state: ContentState,
        front: Vec<u8>,
    ) -> Result<ContentNotes, &'static str> {
        state.resume(front, self.policy.peek_content, self.cleared.open_contents)
    }
}

impl ContentState {
    /// Octets.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Continues with this front, as [`ContentNotes::new`] has the rest. If contents were not opened before, the
    /// beginning is gone: the content counts as one whose labels cannot be read, if its type makes it a signed one.
    ///
    /// # Errors
    /// The digest is not one.
    pub fn resume(
        self,
        front: Vec<u8>,
        peek: bool,
        open: bool,
    ) -> Result<ContentNotes, &'static str> {
        let state = self.hasher[..].try_into().map_err(|_| "a digest of another length")?;
        let hasher = Sha256::deserialize(state).map_err(|_| "a malformed digest")?;
        let late = || match self.length {
            0 => SignedReader::default(),
            _ => SignedReader::without_beginning(),
        };
        let signed = open.then(|| self.signed.unwrap_or_else(late));
        Ok(ContentNotes { length: self.length, hasher, peek, prefix: front, signed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use p1::testing::signed;

    fn labels(notes: &ContentNotes) -> (usize, bool) {
        let cms = "1.2.840.113549.1.9.16.1.6".parse().map(ContentType::Extended).ok();
        let labels = notes.content(cms.as_ref()).labels;
        (labels.labels.len(), labels.unreadable)
    }

    #[test]
    fn a_content_is_taken_up_again_at_every_octet() {
        let label = [0x31, 7, 6, 2, 0x2a, 3, 2, 1, 4];
        let octets = signed(&[&[&label[..]]], b"text");
        let mut whole = ContentNotes::new(true, true);
        whole.take(&octets);
        assert_eq!(labels(&whole), (1, false));
        for cut in 0..octets.len() {
            let mut front = ContentNotes::new(true, true);
            front.take(&octets[..cut]);
            let state = postcard::to_stdvec(&front.state()).unwrap();
            let state: ContentState = postcard::from_bytes(&state).unwrap();
            let mut rest = state.clone().resume(front.front().to_vec(), true, true).unwrap();
            rest.take(&octets[cut..]);
            assert_eq!(
                rest.content(Some(&ContentType::P22)),
                whole.content(Some(&ContentType::P22))
            );
            // Contents are not opened any more.
            let mut closed = state.resume(Vec::new(), false, false).unwrap();
            closed.take(&octets[cut..]);
            assert_eq!(labels(&closed), (0, false));
            assert_eq!(closed.digest(), whole.digest());
        }
        let mut closed = ContentNotes::new(false, false);
        closed.take(&octets[..9]);
        let mut opened = closed.state().resume(Vec::new(), false, true).unwrap();
        opened.take(&octets[9..]);
        assert_eq!(labels(&opened), (0, true));
    }

    #[test]
    fn a_digest_of_another_length_is_refused() {
        let mut state = ContentNotes::default().state();
        state.hasher.pop();
        assert!(state.resume(Vec::new(), false, false).is_err());
    }
}
