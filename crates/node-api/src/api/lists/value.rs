//! The value of the store that has all lists.

use super::List;

/// Version of the value, its first octet.
const VERSION: u8 = 1;

/// All lists, and the canonical addresses of those that were removed, which an earlier value does not have.
///
/// # Errors
/// In words.
pub fn read_value(value: &[u8]) -> Result<(Vec<List>, Vec<String>), String> {
    let fields = match value.split_first() {
        Some((&VERSION, fields)) => fields,
        Some((version, _)) => return Err(format!("version {version} is not known")),
        None => return Err("it is empty".to_owned()),
    };
    let read = || -> postcard::Result<_> {
        let (lists, rest) = postcard::take_from_bytes(fields)?;
        let removed = if rest.is_empty() { Vec::new() } else { postcard::from_bytes(rest)? };
        Ok((lists, removed))
    };
    read().map_err(|error| error.to_string())
}

/// The value with these.
#[must_use]
pub fn value(lists: &[List], removed: &[String]) -> Vec<u8> {
    // Plain data into a growing buffer cannot fail.
    postcard::to_extend(&(lists, removed), vec![VERSION]).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_without_removed_lists_is_read() {
        let both = value(&[], &["/c=xx/cn=staff".to_owned()]);
        assert_eq!(read_value(&both), Ok((Vec::new(), vec!["/c=xx/cn=staff".to_owned()])));
        assert_eq!(read_value(&[VERSION, 0]), Ok((Vec::new(), Vec::new())));
        assert!(read_value(&[]).is_err() && read_value(&[9, 0]).is_err());
        assert!(read_value(&[VERSION, 7]).is_err());
    }
}
