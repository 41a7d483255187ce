//! Questions that stand before everything else.

use crate::draft::Draft;
use crate::model::{Number, Row};

use super::editor::Line;

/// What happens once a draft is out of the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leave {
    /// Back to the list.
    Back,
    /// The program ends.
    Quit,
}

/// A question or a line to fill in.
#[derive(Clone, Debug)]
pub(crate) enum Dialog {
    /// Delete this message?
    Delete(Row),
    /// Keep or discard the draft?
    Leave(Leave),
    /// These things should be known before it is sent.
    Send(Box<Draft>, Vec<String>),
    /// Into which directory? With the number of files.
    Extract(Number, usize, Line),
    /// Which text?
    Search(Line),
    /// All keys; scrolled by so many lines.
    Help(usize),
}
