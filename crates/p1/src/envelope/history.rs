//! Histories: the names that a message had before a redirection or the expansion of a list
//! (extensions 25, 26 and 30; X.411 8.3.1.1.1.7, 8.3.1.1.1.8 and 8.3.1.2.1.3).

use crate::extension::{Criticality, Dialect, ExtensionField, Extensions, number};
use crate::names::ORName;
use crate::time::Time;
use crate::wire::{bound, list};
use base::ber::{Element, Error, Fault, Field, Writer, universal as u};
use std::fmt;

/// redirection-reason. Unknown numbers are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RedirectionReason(pub i64);

impl RedirectionReason {
    /// recipient-assigned-alternate-recipient.
    pub const RECIPIENT_ASSIGNED: RedirectionReason = RedirectionReason(0);
    /// originator-requested-alternate-recipient.
    pub const ORIGINATOR_REQUESTED: RedirectionReason = RedirectionReason(1);
    /// recipient-MD-assigned-alternate-recipient.
    pub const RECIPIENT_DOMAIN_ASSIGNED: RedirectionReason = RedirectionReason(2);
    /// directory-look-up.
    pub const DIRECTORY_LOOK_UP: RedirectionReason = RedirectionReason(3);
    /// alias.
    pub const ALIAS: RedirectionReason = RedirectionReason(4);

    /// The name X.411 gives it.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::RECIPIENT_ASSIGNED => Some("recipient-assigned-alternate-recipient"),
            Self::ORIGINATOR_REQUESTED => Some("originator-requested-alternate-recipient"),
            Self::RECIPIENT_DOMAIN_ASSIGNED => Some("recipient-MD-assigned-alternate-recipient"),
            Self::DIRECTORY_LOOK_UP => Some("directory-look-up"),
            Self::ALIAS => Some("alias"),
            _ => None,
        }
    }
}

/// The name, or the number if it has no name.
impl fmt::Display for RedirectionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => write!(f, "{}", self.0),
        }
    }
}

/// Redirection: who was to get the message, until when, and why somebody else gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirection {
    /// The recipient before this redirection.
    pub intended: ORName,
    /// The time of the redirection.
    pub time: Time,
    /// redirection-reason.
    pub reason: RedirectionReason,
}

/// DLExpansion: a list that the message was sent to, and when it was expanded. An
/// OriginatorAndDLExpansion has the same form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expansion {
    /// The list, or the originator.
    pub name: ORName,
    /// The time of the expansion, or of the origination.
    pub time: Time,
}

impl Redirection {
    fn read(e: &Element<'_>) -> Result<Redirection, Error> {
        let mut members = e.children()?;
        let intended = Expansion::read(&members.require(u::SEQUENCE)?)?;
        let reason = RedirectionReason(members.require(u::ENUMERATED)?.integer()?);
        members.finish()?;
        Ok(Redirection { intended: intended.name, time: intended.time, reason })
    }

    fn write(&self, w: &mut Writer) {
        w.constructed(u::SEQUENCE, |w| {
            write_name_and_time(w, &self.intended, &self.time);
            w.integer(u::ENUMERATED, self.reason.0);
        });
    }
}

impl Expansion {
    fn read(e: &Element<'_>) -> Result<Expansion, Error> {
        let mut members = e.children()?;
        let name = ORName::read(&members.require(crate::wire::tag::OR_NAME)?)?;
        let time = Time::read(&members.require(u::UTC_TIME)?)?;
        members.finish()?;
        Ok(Expansion { name, time })
    }

    fn write(&self, w: &mut Writer) {
        write_name_and_time(w, &self.name, &self.time);
    }
}

fn write_name_and_time(w: &mut Writer, name: &ORName, time: &Time) {
    w.constructed(u::SEQUENCE, |w| {
        name.write(w);
        time.write_as(w, u::UTC_TIME);
    });
}

/// The redirections of a recipient, oldest first; empty if there are none. The extensions are those of
/// the per-recipient fields or, in a report's envelope, those of the report.
///
/// # Errors
/// Malformed, or more than 512 (ub-redirections).
pub fn redirection_history(extensions: &Extensions) -> Result<Vec<Redirection>, Error> {
    let (number, most) = (number::REDIRECTION_HISTORY, bound::REDIRECTIONS);
    read_history(extensions, number, most, Redirection::read).field("redirection-history")
}

/// The lists that were expanded, oldest first; empty if there are none.
///
/// # Errors
/// Malformed, or more than 512 (ub-dl-expansions).
pub fn dl_expansion_history(extensions: &Extensions) -> Result<Vec<Expansion>, Error> {
    let (number, most) = (number::DL_EXPANSION_HISTORY, bound::DL_EXPANSIONS);
    read_history(extensions, number, most, Expansion::read).field("dl-expansion-history")
}

/// The originator and the lists that were expanded, of a report, oldest first; empty if there are none.
///
/// # Errors
/// Malformed, or more than 513 (ub-orig-and-dl-expansions).
pub fn originator_and_dl_expansion_history(
    extensions: &Extensions,
) -> Result<Vec<Expansion>, Error> {
    let (number, most) = (number::ORIGINATOR_AND_DL_EXPANSION_HISTORY, bound::DL_EXPANSIONS + 1);
    read_history(extensions, number, most, Expansion::read)
        .field("originator-and-DL-expansion-history")
}

fn read_history<T>(
    extensions: &Extensions,
    number: i64,
    most: usize,
    read: impl Fn(&Element<'_>) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    match extensions.standard(number) {
        Some(field) => list(&Element::parse(&field.value)?, most, read),
        None => Ok(Vec::new()),
    }
}

/// The originally intended recipient: the one before the first redirection. `None` if there was no
/// redirection, or the history cannot be read.
pub fn originally_intended(extensions: &Extensions) -> Option<ORName> {
    redirection_history(extensions).ok()?.into_iter().next().map(|first| first.intended)
}

/// Adds a redirection to a recipient's history. If there is none, it is created.
///
/// # Errors
/// The existing history is malformed or full. Then nothing is changed.
pub fn add_redirection(extensions: &mut Extensions, new: Redirection) -> Result<(), Error> {
    let mut all = redirection_history(extensions)?;
    if all.len() >= bound::REDIRECTIONS {
        return Err(Fault::TooMany(bound::REDIRECTIONS as u64)).field("redirection-history");
    }
    all.push(new);
    set_history(extensions, number::REDIRECTION_HISTORY, |w| all.iter().for_each(|r| r.write(w)));
    Ok(())
}

/// Adds an expansion to a message's history. If there is none, it is created.
///
/// # Errors
/// The existing history is malformed or full. Then nothing is changed.
pub fn add_dl_expansion(extensions: &mut Extensions, new: Expansion) -> Result<(), Error> {
    let mut all = dl_expansion_history(extensions)?;
    if all.len() >= bound::DL_EXPANSIONS {
        return Err(Fault::TooMany(bound::DL_EXPANSIONS as u64)).field("dl-expansion-history");
    }
    all.push(new);
    set_history(extensions, number::DL_EXPANSION_HISTORY, |w| all.iter().for_each(|e| e.write(w)));
    Ok(())
}

/// Puts a history in place of the old one, whose dialect and criticality it keeps.
fn set_history(extensions: &mut Extensions, number: i64, write: impl FnOnce(&mut Writer)) {
    let old = extensions.standard(number);
    let (dialect, criticality) =
        old.map_or((Dialect::default(), NONE), |f| (f.dialect, f.criticality));
    let field = ExtensionField::standard(number, criticality, |w| {
        w.constructed(u::SEQUENCE, write);
    });
    extensions.set(ExtensionField { dialect, ..field });
}

const NONE: Criticality =
    Criticality { for_submission: false, for_transfer: false, for_delivery: false };

#[cfg(test)]
mod tests {
    use super::*;
    use base::Utc;

    fn name(surname: &str) -> ORName {
        let address = format!("C=XX;ADMD=;PRMD=alpha;S={surname}").parse().unwrap();
        ORName { address, directory_name: None }
    }

    fn time(minute: u64) -> Time {
        Time::from(Utc((1_767_323_040 + 60 * minute) * 1_000_000))
    }

    fn redirection(surname: &str, reason: RedirectionReason) -> Redirection {
        Redirection { intended: name(surname), time: time(1), reason }
    }

    #[test]
    fn redirections_are_read_as_they_were_added() {
        let mut extensions = Extensions::default();
        assert_eq!(redirection_history(&extensions), Ok(vec![]));
        assert_eq!(originally_intended(&extensions), None);
        let all = [
            redirection("Smith", RedirectionReason::ORIGINATOR_REQUESTED),
            redirection("Jones", RedirectionReason(9)),
        ];
        for one in all.clone() {
            add_redirection(&mut extensions, one).unwrap();
        }
        assert_eq!(redirection_history(&extensions).unwrap(), all);
        assert_eq!(originally_intended(&extensions), Some(name("Smith")));
        assert_eq!(extensions.0.len(), 1);
    }

    /// RedirectionHistory { { { Smith, 260102030500Z }, originator-requested } }.
    #[test]
    fn a_redirection_has_the_octets_of_the_standard() {
        let mut extensions = Extensions::default();
        let one = redirection("S", RedirectionReason::ORIGINATOR_REQUESTED);
        add_redirection(&mut extensions, one).unwrap();
        let value = &extensions.0[0].value;
        let mut w = Writer::new();
        name("S").write(&mut w);
        let name = w.into_vec();
        let inner = name.len() + 15;
        let mut expected = vec![0x30, inner as u8 + 7, 0x30, inner as u8 + 5, 0x30, inner as u8];
        expected.extend_from_slice(&name);
        expected.extend_from_slice(b"\x17\x0d260102030500Z\x0a\x01\x01");
        assert_eq!(value[..], expected);
    }

    #[test]
    fn expansions_are_read_as_they_were_added() {
        let mut extensions = Extensions::default();
        let all = ["List", "Staff"].map(|s| Expansion { name: name(s), time: time(2) });
        for one in all.clone() {
            add_dl_expansion(&mut extensions, one).unwrap();
        }
        assert_eq!(dl_expansion_history(&extensions).unwrap(), all);
        let mut field = extensions.0.remove(0);
        field.kind = crate::ExtensionType::Standard(number::ORIGINATOR_AND_DL_EXPANSION_HISTORY);
        let report = Extensions(vec![field]);
        assert_eq!(originator_and_dl_expansion_history(&report).unwrap(), all);
    }

    #[test]
    fn what_is_malformed_or_full_is_not_changed() {
        let field = |value: Vec<u8>| ExtensionField {
            value: value.into(),
            ..ExtensionField::standard(number::REDIRECTION_HISTORY, NONE, |_| {})
        };
        let malformed: [&[u8]; 4] =
            [&[5, 0], &[0x30, 2, 5, 0], &[0x30, 4, 0x30, 2, 0x30, 0], &[0x30, 9]];
        for value in malformed {
            let mut extensions = Extensions(vec![field(value.to_vec())]);
            let before = extensions.clone();
            let one = redirection("Smith", RedirectionReason::ALIAS);
            add_redirection(&mut extensions, one).unwrap_err();
            assert_eq!((extensions == before, originally_intended(&before)), (true, None));
        }
        let mut extensions = Extensions::default();
        for _ in 0..bound::REDIRECTIONS {
            add_redirection(&mut extensions, redirection("A", RedirectionReason::ALIAS)).unwrap();
        }
        let one = redirection("B", RedirectionReason::ALIAS);
        let error = add_redirection(&mut extensions, one).unwrap_err();
        assert!(error.to_string().contains("redirection-history"), "{error}");
        assert_eq!(redirection_history(&extensions).unwrap().len(), 512);
    }

    #[test]
    fn a_history_keeps_the_dialect_it_came_in() {
        let mut extensions = Extensions::default();
        add_redirection(&mut extensions, redirection("A", RedirectionReason::ALIAS)).unwrap();
        extensions.0[0].dialect = Dialect::BlueBook1988;
        add_redirection(&mut extensions, redirection("B", RedirectionReason::ALIAS)).unwrap();
        assert_eq!(extensions.0[0].dialect, Dialect::BlueBook1988);
        assert_eq!(extensions.0[0].raw, None);
    }
}
