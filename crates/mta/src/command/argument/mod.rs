//! Values of arguments that several commands have: an empty one never stands for everything.

pub(super) mod error;

use crate::config::whole_address;
use node::filter::{AddressPart, text_part};

/// A text that is not empty, such as a name or a part of an identifier.
pub(super) fn text(text: &str) -> Result<String, String> {
    text_part(text).map(str::to_owned).map_err(|error| error.to_string())
}

/// A whole O/R address, as it was written.
pub(super) fn address(text: &str) -> Result<String, String> {
    whole_address(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

/// A part of an O/R address, as it was written.
pub(super) fn part(text: &str) -> Result<String, String> {
    let part: Result<AddressPart, _> = text.parse();
    part.map(|_| text.to_owned()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_empty_is_no_condition() {
        for none in ["", " ", "\t"] {
            assert!(
                text(none).is_err() && address(none).is_err() && part(none).is_err(),
                "{none:?}"
            );
        }
        for no_address in ["S=", "ops", "/", "ADMD=", "FOO=bar"] {
            assert!(address(no_address).is_err(), "{no_address:?}");
        }
        assert_eq!(text(" act "), Ok("act".to_owned()));
        assert_eq!(address("C=IT;S=ops"), Ok("C=IT;S=ops".to_owned()));
        assert_eq!(part("s=ops"), Ok("s=ops".to_owned()));
    }
}
