//! What a peer can make a reader hold. A PDU with more is refused; the error names the limit.
//!
//! X.413 has upper bounds of its own (MSUpperBounds), most of which are larger than any store needs.
//! The limits here are ours.

/// Filters within filters: the outermost has depth 1.
pub const MAX_FILTER_DEPTH: usize = 10;
/// Filter items and combinations of a whole filter.
pub const MAX_FILTERS: usize = 256;
/// Strings of one substrings item.
pub const MAX_SUBSTRINGS: usize = 64;
/// Sequence numbers in one list.
pub const MAX_SEQUENCE_NUMBERS: usize = 65_536;
/// Entries in one list result.
pub const MAX_ENTRIES: usize = 16_384;
/// Attributes of one entry; attributes of one selection.
pub const MAX_ATTRIBUTES: usize = 1_024;
/// Values of one attribute. A message may have this many recipients (ub-recipients of X.411).
pub const MAX_VALUES: usize = 32_767;
/// Attributes of one summary request.
pub const MAX_SUMMARIES: usize = 64;
/// Distinct values that one summary counts.
pub const MAX_SUMMARY_VALUES: usize = 32_767;
/// Object identifiers in one list: content types, matching rules, attribute types.
pub const MAX_IDENTIFIERS: usize = 1_024;
/// Registrations and deregistrations in one list.
pub const MAX_REGISTRATIONS: usize = 256;
/// Names of message groups in one list, and names of one path.
pub const MAX_GROUPS: usize = 1_024;
/// Changes in one modify argument.
pub const MAX_MODIFICATIONS: usize = 256;
/// Problems that one error lists.
pub const MAX_PROBLEMS: usize = 4_096;
/// Extensions in one list.
pub const MAX_EXTENSIONS: usize = 64;
/// Security labels in one list.
pub const MAX_LABELS: usize = 256;
/// The largest alert-registration-identifier (ub-auto-actions; from the dissector of another make). That of a
/// registration may be larger, but then its alerts are out of bounds.
pub const MAX_ALERT_IDENTIFIER: i64 = 128;
/// Destinations of one alert.
pub const MAX_DESTINATIONS: usize = 64;
/// Most recipients of one auto-forward. The standard allows 32,767.
pub const MAX_FORWARD_RECIPIENTS: usize = 64;
