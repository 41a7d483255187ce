//! What a message's body is made of: canned text of any size, a file, or a few words.

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

/// The canned text repeats this line: 80 octets of IA5 with its line end.
const LINE: &[u8; 80] =
    b"THE QUICK BROWN FOX JUMPS OVER THE LAZY DOG 1234567890 THIS IS A TEST MESSAGE.\r\n";

/// Where the octets of a body come from. They are read as they are sent, never held.
#[derive(Debug)]
pub(crate) enum Source {
    /// So many octets of canned text.
    Canned(u64),
    /// A file of that many octets.
    File(File, u64),
    /// These octets.
    Octets(Bytes),
}

impl Source {
    pub(crate) fn open(path: &Path) -> Result<Source> {
        let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        let meta = file.metadata().with_context(|| format!("cannot read {}", path.display()))?;
        if !meta.is_file() {
            bail!("{} is not a file: its length must be known before it is sent", path.display());
        }
        Ok(Source::File(file, meta.len()))
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Source::Canned(len) | Source::File(_, len) => *len,
            Source::Octets(octets) => octets.len() as u64,
        }
    }

    /// Up to `max` octets from `offset` on; none only at the end.
    pub(crate) fn read(&self, offset: u64, max: usize) -> Result<Bytes> {
        let left = self.len().saturating_sub(offset);
        let len = usize::try_from(left).unwrap_or(usize::MAX).min(max);
        match self {
            Source::Canned(_) => {
                let start = usize::try_from(offset % LINE.len() as u64).unwrap_or(0);
                Ok(LINE.iter().cycle().skip(start).take(len).copied().collect())
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
        }
    }
}

/// A size as people write it: `1kB`, `10 MB`, `512`. Decimal; up to 1 TB.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1_000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        _ => return Err(format!("unknown unit {unit:?}: use B, kB, MB or GB (decimal)")),
    };
    let number: u64 = number.parse().map_err(|_| format!("{text:?} is no size: try 10kB"))?;
    number
        .checked_mul(factor)
        .filter(|n| *n <= 1_000_000_000_000)
        .ok_or_else(|| format!("{text} is more than 1 TB"))
}

/// A time as people write it: `500ms`, `60s`, `5m`; up to a day.
pub(crate) fn parse_time(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.trim() {
        "ms" => 1,
        "s" => 1_000,
        "m" | "min" => 60_000,
        _ => return Err(format!("{text:?}: write a time with its unit, as 500ms, 60s or 5m")),
    };
    let number: u64 = number.parse().map_err(|_| format!("{text:?} is no time: try 60s"))?;
    let time = number.checked_mul(factor).map(Duration::from_millis);
    time.filter(|t| *t <= Duration::from_hours(24)).ok_or_else(|| format!("{text} is over a day"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_decimal() {
        for (text, size) in
            [("1kB", 1_000), ("10 MB", 10_000_000), ("512", 512), ("1GB", 1_000_000_000)]
        {
            assert_eq!(parse_size(text), Ok(size));
        }
        for bad in ["", "kB", "10 furlongs", "-1", "99999999GB", "1.5MB"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn times_have_units() {
        for (text, ms) in [("0s", 0), ("500ms", 500), ("60 s", 60_000), ("5m", 300_000)] {
            assert_eq!(parse_time(text), Ok(Duration::from_millis(ms)));
        }
        for bad in ["", "60", "s", "-1s", "1h", "99999m", "99999999999999999999ms"] {
            assert!(parse_time(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn canned_text_is_the_same_however_it_is_read() {
        let source = Source::Canned(1_000);
        let whole = source.read(0, 4_096).unwrap();
        assert_eq!(whole.len(), 1_000);
        let mut pieces = Vec::new();
        for offset in (0..1_000).step_by(33) {
            pieces.extend_from_slice(&source.read(offset, 33).unwrap());
        }
        assert_eq!(pieces, whole);
        assert!(source.read(1_000, 10).unwrap().is_empty());
    }
}
