//! Message contents: a heading, and a body of canned text, of a file, or of given octets.

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::LazyLock;

/// The line of the canned text: 80 octets of IA5 with its line end.
const LINE: &[u8; 80] =
    b"THE QUICK BROWN FOX JUMPS OVER THE LAZY DOG 1234567890 THIS IS A TEST MESSAGE.\r\n";
/// Lines held in memory: all canned texts are slices of one block.
const LINES: usize = 1_024;

static BLOCK: LazyLock<Bytes> = LazyLock::new(|| LINE.repeat(LINES).into());

/// The source of a body. It is read as it is sent, never held in memory.
#[derive(Debug)]
pub enum Source {
    /// Canned text of this length.
    Canned(u64),
    /// A file of this length.
    File(File, u64),
    /// These octets.
    Octets(Bytes),
    /// These, one after the other: body parts, and the octets before their data.
    Several(Vec<Source>),
}

impl Source {
    /// Opens a file.
    ///
    /// # Errors
    /// It cannot be read, or is not a regular file.
    pub fn open(path: &Path) -> Result<Source> {
        let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        let meta = file.metadata().with_context(|| format!("cannot read {}", path.display()))?;
        if !meta.is_file() {
            bail!("{} is not a file: its length must be known before it is sent", path.display());
        }
        Ok(Source::File(file, meta.len()))
    }

    /// Length in octets.
    pub fn len(&self) -> u64 {
        match self {
            Source::Canned(len) | Source::File(_, len) => *len,
            Source::Octets(octets) => octets.len() as u64,
            Source::Several(all) => all.iter().map(Source::len).fold(0, u64::saturating_add),
        }
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Up to `max` octets from `offset` on; empty only at the end.
    ///
    /// # Errors
    /// A file cannot be read, or has become shorter.
    pub fn read(&self, offset: u64, max: usize) -> Result<Bytes> {
        let left = self.len().saturating_sub(offset);
        let len = usize::try_from(left).unwrap_or(usize::MAX).min(max);
        match self {
            Source::Canned(_) => {
                let start = usize::try_from(offset % LINE.len() as u64).unwrap_or(0);
                Ok(BLOCK.slice(start..start + len.min(BLOCK.len() - LINE.len())))
            }
            Source::File(file, total) => {
                let mut buffer = vec![0; len];
                file.read_exact_at(&mut buffer, offset).with_context(|| {
                    format!("the file became shorter than its {total} octets while it was sent")
                })?;
                Ok(buffer.into())
            }
            Source::Octets(octets) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX).min(octets.len());
                Ok(octets.slice(start..start + len))
            }
            Source::Several(all) => {
                let mut at = offset;
                for source in all {
                    match at.checked_sub(source.len()) {
                        Some(beyond) => at = beyond,
                        None => return source.read(at, max),
                    }
                }
                Ok(Bytes::new())
            }
        }
    }
}

/// A whole content: the octets before the body, and the body's source.
#[derive(Debug)]
pub struct Content {
    /// All octets before the body's.
    pub head: Bytes,
    /// The body's source.
    pub source: Source,
}

impl Content {
    /// Length in octets: heading and body.
    pub fn len(&self) -> u64 {
        self.source.len().saturating_add(self.head.len() as u64)
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Compares these octets with those from `offset` on.
    ///
    /// # Errors
    ///
    /// The first difference, with its offset; or a file cannot be read again.
    pub fn check(&self, offset: u64, arrived: &[u8]) -> Result<()> {
        let (mut at, mut rest) = (offset, arrived);
        while !rest.is_empty() {
            let piece = self.read(at, rest.len())?;
            let (now, later) = rest.split_at_checked(piece.len()).unwrap_or((rest, &[]));
            if piece.is_empty() || now != &piece[..] {
                bail!("what was delivered differs from what was submitted, after octet {at}");
            }
            at += piece.len() as u64;
            rest = later;
        }
        Ok(())
    }

    /// Up to `max` octets from `offset` on; empty only at the end.
    ///
    /// # Errors
    /// A file cannot be read, or has become shorter.
    pub fn read(&self, offset: u64, max: usize) -> Result<Bytes> {
        let head = self.head.len() as u64;
        match offset.checked_sub(head) {
            Some(offset) => self.source.read(offset, max),
            None => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.head.len());
                let end = start.saturating_add(max).min(self.head.len());
                Ok(self.head.slice(start..end))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All of it, read in pieces of at most `max` octets.
    fn all(source: &Source, max: usize) -> Vec<u8> {
        let mut octets = Vec::new();
        loop {
            let piece = source.read(octets.len() as u64, max).unwrap();
            assert!(piece.len() <= max);
            if piece.is_empty() {
                return octets;
            }
            octets.extend_from_slice(&piece);
        }
    }

    #[test]
    fn canned_text_is_the_same_however_it_is_read() {
        for len in [0, 1, 79, 80, 1_000, 200_000] {
            let source = Source::Canned(len);
            let expected: Vec<u8> = LINE.iter().cycle().take(len as usize).copied().collect();
            for max in [33, 80, 4_096, usize::MAX] {
                assert_eq!(all(&source, max), expected, "{len} octets by {max}");
            }
            assert!(source.read(len, 10).unwrap().is_empty());
        }
    }

    #[test]
    fn several_sources_are_read_as_one() {
        let octets = |text: &'static [u8]| Source::Octets(Bytes::from_static(text));
        let several = Source::Several(vec![
            octets(b"ab"),
            octets(b""),
            Source::Several(vec![octets(b"cde"), Source::Canned(3)]),
            octets(b"f"),
        ]);
        assert_eq!(several.len(), 9);
        for max in [1, 2, 100] {
            assert_eq!(all(&several, max), b"abcdeTHEf", "by {max}");
        }
        assert!(several.read(9, 5).unwrap().is_empty());
    }

    #[test]
    fn every_change_of_a_content_is_seen() {
        let content =
            Content { head: Bytes::from_static(b"head"), source: Source::Canned(300_000) };
        let whole = [b"head".to_vec(), all(&content.source, 4_096)].concat();
        assert_eq!(content.len(), whole.len() as u64);
        content.check(0, &whole).unwrap();
        content.check(2, &whole[2..100]).unwrap();
        content.check(150_000, &whole[150_000..]).unwrap();
        for at in [0, 3, 4, 5, 83, 81_000, 300_003] {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            assert!(content.check(0, &changed).is_err(), "octet {at}");
        }
        let longer = [whole.clone(), b"T".to_vec()].concat();
        assert!(content.check(0, &longer).is_err() && content.check(1, &whole).is_err());
        assert!(content.check(300_005, b"T").is_err());
    }
}
