//! The form of all that goes to one peer.

use super::{CommonName, Dialect, ExtensionField};

/// Whether the priority-level-qualifier goes to a peer (STANAG 4406 Annex A).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
pub enum Qualifier {
    /// As a private extension: six precedences. A dialect without private extensions has no form for it.
    #[default]
    Private,
    /// Left out: the peer sees the priority alone, three precedences.
    Omit,
}

/// The form of all APDUs that a peer is sent. A transfer that is resumed keeps the form in which it began, because
/// it must have the same octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Form {
    /// The edition of P1.
    pub dialect: Dialect,
    /// Whether the priority-level-qualifier is among the extensions.
    pub qualifier: Qualifier,
    /// Whether members that have the value of their DEFAULT are written: decoders of some peers fail without them.
    pub explicit_defaults: bool,
}

impl Default for Form {
    fn default() -> Form {
        Form { dialect: Dialect::Modern, qualifier: Qualifier::Private, explicit_defaults: true }
    }
}

/// The usual form of a dialect.
impl From<Dialect> for Form {
    fn from(dialect: Dialect) -> Form {
        Form { dialect, ..Form::default() }
    }
}

impl Form {
    /// Whether an extension goes to the peer in this form (see [`ExtensionField::has_form`]).
    pub fn has(&self, field: &ExtensionField) -> bool {
        let is_omitted = self.qualifier == Qualifier::Omit && field.is_priority_level_qualifier();
        field.has_form(self.dialect) && !is_omitted
    }

    /// Whether the peer gets the priority-level-qualifier.
    pub fn has_qualifier(&self) -> bool {
        self.dialect == Dialect::Modern && self.qualifier == Qualifier::Private
    }

    /// Which members of the value of their DEFAULT are written.
    pub fn defaults(&self) -> Defaults {
        match (self.explicit_defaults, self.dialect) {
            (false, _) => Defaults::LeftOut,
            (true, Dialect::RedBook1984(CommonName::NoForm | CommonName::DomainDefined)) => {
                Defaults::Of1984
            }
            (true, Dialect::Modern | Dialect::BlueBook1988) => Defaults::Explicit,
        }
    }
}

/// Which members of an APDU are written that have the value of their DEFAULT. A decoder gives the same with and
/// without them (X.690 8.9.3, 8.11.2). The parameters of facsimile and teletex in encoded information types, which
/// are DEFAULT since 1988, are never written: no MTA sends parameters of a type that a content does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defaults {
    /// None, as DER has it. All that is kept here is in this form.
    LeftOut,
    /// Those that APDUs of 1984 have: priority, per-message-indicators, type-of-MTS-user (typeOfUA).
    Of1984,
    /// Those since 1988: also extensions, criticality and extension-value, and other-actions of traces.
    Explicit,
}

impl Defaults {
    /// Whether a member that 1984 has as well is written where it has this value.
    pub(crate) fn writes<T: PartialEq>(self, value: &T, default: &T) -> bool {
        self != Defaults::LeftOut || value != default
    }

    /// Whether a member that came in 1988 is written where it has this value.
    pub(crate) fn writes_later<T: PartialEq>(self, value: &T, default: &T) -> bool {
        self == Defaults::Explicit || value != default
    }
}
