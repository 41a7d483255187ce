//! Recordings of `mta run --record`: they are read, run again and copied without contents.

pub(super) mod replay;
pub(super) mod strip;

use record::{Decoder, FormatError, Header, Record};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Octets that are read at once.
const PIECE: usize = 1 << 20;

/// Why a recording is not read, or not to its end.
#[derive(Debug, thiserror::Error)]
enum RecordingError {
    #[error("cannot read {path}: {error}")]
    Read { path: PathBuf, error: io::Error },
    #[error("{path}: {error}")]
    Format { path: PathBuf, error: FormatError },
    #[error("{0}: the recording was cut off before its first record")]
    Empty(PathBuf),
    #[error("{0} is not a regular file")]
    Kind(PathBuf),
}

/// A file that is read.
struct Recorded {
    path: PathBuf,
    file: File,
    decoder: Decoder,
    piece: Vec<u8>,
}

impl Recorded {
    /// Opens a recording and reads its header.
    fn open(path: &Path) -> Result<(Recorded, Box<Header>), RecordingError> {
        let failed = |error| RecordingError::Read { path: path.to_owned(), error };
        // To open a FIFO would wait for its other end.
        if !std::fs::metadata(path).map_err(failed)?.is_file() {
            return Err(RecordingError::Kind(path.to_owned()));
        }
        let file = File::open(path).map_err(failed)?;
        let (decoder, piece) = (Decoder::default(), vec![0; PIECE]);
        let mut recorded = Recorded { path: path.to_owned(), file, decoder, piece };
        match recorded.next()? {
            Some(Record::Header(header)) => Ok((recorded, header)),
            _ => Err(RecordingError::Empty(path.to_owned())),
        }
    }

    /// The next record; `None` at the end of the file.
    fn next(&mut self) -> Result<Option<Record>, RecordingError> {
        loop {
            let next = self.decoder.next();
            let failed = |error| RecordingError::Format { path: self.path.clone(), error };
            if let Some(record) = next.map_err(failed)? {
                return Ok(Some(record));
            }
            let read = self.file.read(&mut self.piece);
            let read =
                read.map_err(|error| RecordingError::Read { path: self.path.clone(), error })?;
            if read == 0 {
                return Ok(None);
            }
            self.decoder.push(self.piece.get(..read).unwrap_or_default());
        }
    }

    /// Octets of a record that was cut off at the end of the file.
    fn torn(&self) -> usize {
        self.decoder.left()
    }
}
