//! Recordings of a node.
//!
//! A node reads nothing but its configuration and its inputs, each with the time. So a file of these is the
//! whole of a run: the same node takes them again and gives the same outputs. The [`Recorder`] makes the file,
//! the [`Decoder`] reads it, and the [`Player`] runs it and compares the outputs with those of the run. A
//! [`strip::Stripper`] makes a copy without contents.
//!
//! The file has no passwords. One of the configuration is serialised as a mask ([`guard::Secret`]). Those that
//! others present are found in the octets as they pass, and masked at equal length ([`mask`]).

pub mod fingerprint;
pub mod format;
pub mod header;
pub mod mask;
pub mod names;
pub mod player;
pub mod recorder;
pub mod strip;
pub mod words;

pub use fingerprint::{Fingerprint, Fingerprints};
pub use format::{Decoder, End, FORMAT, FormatError, MAX_RECORD, Record};
pub use header::Header;
pub use names::Names;
pub use player::{Difference, Player, Step};
pub use recorder::Recorder;
