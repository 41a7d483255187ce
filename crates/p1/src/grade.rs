//! Six precedences over three priorities: the priority-level-qualifier of STANAG 4406.

use crate::extension::{Criticality, Dialect, ExtensionField, ExtensionType, Extensions};
use crate::flags::Priority;
use base::Precedence;
use base::ber::{Element, Error, Fault, Field, Oid, Writer, universal};

/// priority-level-qualifier (1.3.26.0.4406.0.8.0): whether a message has the lower or the higher
/// precedence of its priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PriorityLevelQualifier {
    /// low, 0.
    Low,
    /// high, 1.
    High,
}

/// Content octets of 1.3.26.0.4406.0.8.0.
pub(crate) const QUALIFIER: [u8; 8] = [0x2b, 26, 0, 0xa2, 0x36, 0, 8, 0];

impl PriorityLevelQualifier {
    /// The qualifier among a message's extensions; `None` if absent.
    ///
    /// # Errors
    /// The value is neither INTEGER nor ENUMERATED, or neither 0 nor 1.
    pub fn from_extensions(
        extensions: &Extensions,
    ) -> Result<Option<PriorityLevelQualifier>, Error> {
        let name = "priority-level-qualifier";
        let is_qualifier = ExtensionField::is_priority_level_qualifier;
        let Some(extension) = extensions.0.iter().find(|e| is_qualifier(e)) else {
            return Ok(None);
        };
        let value = Element::parse(&extension.value).field(name)?;
        // The published module has ENUMERATED; an MTA in service sends INTEGER.
        if ![universal::INTEGER, universal::ENUMERATED].contains(&value.tag) {
            return Err(Fault::Unexpected(value.tag)).field(name);
        }
        match value.integer().field(name)? {
            0 => Ok(Some(PriorityLevelQualifier::Low)),
            1 => Ok(Some(PriorityLevelQualifier::High)),
            _ => Err(Fault::Value("PriorityLevelQualifier")).field(name),
        }
    }

    /// The extension field with this value, an INTEGER without criticality.
    pub fn extension(self, dialect: Dialect) -> Option<ExtensionField> {
        let kind = ExtensionType::Private(Oid::from_content(&QUALIFIER).ok()?);
        let mut w = Writer::new();
        w.integer(universal::INTEGER, self as i64);
        let value = w.into_vec().into();
        Some(ExtensionField {
            kind,
            dialect,
            criticality: Criticality::default(),
            value,
            raw: None,
        })
    }
}

/// Priority and qualifier of a precedence (STANAG 4406 Annex A, ACP 123).
pub fn split(precedence: Precedence) -> (Priority, PriorityLevelQualifier) {
    use PriorityLevelQualifier::{High, Low};
    match precedence {
        Precedence::Deferred => (Priority::NonUrgent, Low),
        Precedence::Routine => (Priority::NonUrgent, High),
        Precedence::Priority => (Priority::Normal, Low),
        Precedence::Immediate => (Priority::Normal, High),
        Precedence::Flash => (Priority::Urgent, Low),
        Precedence::Override => (Priority::Urgent, High),
    }
}

/// The precedence of a priority and its qualifier: the inverse of [`split`].
pub fn join(priority: Priority, qualifier: PriorityLevelQualifier) -> Precedence {
    use PriorityLevelQualifier::{High, Low};
    match (priority, qualifier) {
        (Priority::NonUrgent, Low) => Precedence::Deferred,
        (Priority::NonUrgent, High) => Precedence::Routine,
        (Priority::Normal, Low) => Precedence::Priority,
        (Priority::Normal, High) => Precedence::Immediate,
        (Priority::Urgent, Low) => Precedence::Flash,
        (Priority::Urgent, High) => Precedence::Override,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_and_join_are_inverse() {
        for p in Precedence::ALL {
            let (priority, qualifier) = split(p);
            assert_eq!(join(priority, qualifier), p);
        }
    }

    #[test]
    fn reads_integer_and_enumerated_and_writes_integer() {
        // 30 13 { 83 08 <1.3.26.0.4406.0.8.0>, [1] criticality explicit and empty, [2] value 1 }
        let head = [0x30, 0x13, 0x83, 8, 0x2b, 26, 0, 0xa2, 0x36, 0, 8, 0, 0x81, 2, 5, 0];
        for universal in [0x02, 0x0a] {
            let mut field = head.to_vec();
            field.extend([0xa2, 3, universal, 1, 1]);
            let field = ExtensionField::read(&Element::parse(&field).unwrap()).unwrap();
            let found = PriorityLevelQualifier::from_extensions(&Extensions(vec![field]));
            assert_eq!(found, Ok(Some(PriorityLevelQualifier::High)));
        }
        let own = PriorityLevelQualifier::Low.extension(Dialect::Modern).unwrap();
        assert_eq!(own.value[..], [2, 1, 0]);
        assert_eq!(
            PriorityLevelQualifier::from_extensions(&Extensions(vec![own])),
            Ok(Some(PriorityLevelQualifier::Low))
        );
        assert_eq!(PriorityLevelQualifier::from_extensions(&Extensions::default()), Ok(None));
    }
}
