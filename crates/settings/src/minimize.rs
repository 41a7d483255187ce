//! MINIMIZE by the hours of the configuration.

use base::Precedence;
use base::window::Windows;

/// Nothing below a floor goes out at certain hours.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Minimize {
    /// The lowest precedence that goes out.
    pub floor: Precedence,
    /// When.
    pub windows: Windows,
}
