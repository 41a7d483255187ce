//! What all data paths keep to.

use crate::control::ask::Questions;
use crate::control::status::NetworkStatus;
use anyhow::Result;

/// Packets between hosts, by whatever carries them.
pub(crate) trait DataPath: Send {
    /// Carries packets and answers questions until the program is interrupted.
    ///
    /// # Errors
    /// The data path has failed.
    fn run(&mut self, questions: &mut Questions) -> Result<()>;

    /// The counters now, also after [`DataPath::run`]; without the network's name.
    ///
    /// # Errors
    /// The kernel does not give them.
    fn status(&mut self) -> Result<NetworkStatus>;
}
