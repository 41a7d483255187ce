//! Auto-actions: what a store does by itself when an entry arrives (X.413 6.5 and clause 13).
//!
//! The two of 1988 are auto-forward ([`crate::auto_forward`]) and auto-alert. No registration is proven by octets of
//! others.

use crate::filter::Filter;
use crate::limits::MAX_DESTINATIONS;
use crate::registration::number;
use crate::selector::{self, AttributeSelection};
use crate::value::Value;
use crate::wire::{self, explicit, require};
use base::ber::{Element, Error, Fault, Field, Member, Oid, Tag, Writer, read_set, universal as u};
use bytes::Bytes;

/// Content octets of 2.6.4.4, under which the general auto-actions are.
const AUTO_ACTION: [u8; 3] = [0x56, 4, 4];

/// Types of auto-actions, by the last arc of 2.6.4.4.n.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum AutoActionKind {
    /// ipm-auto-forward; auto-forward in 1988.
    AutoForward = 0,
    /// auto-alert.
    AutoAlert = 1,
    /// auto-correlate-reports (1994).
    AutoCorrelateReports = 2,
    /// auto-delete (1994).
    AutoDelete = 3,
    /// auto-modify (1994).
    AutoModify = 4,
}

impl AutoActionKind {
    /// All of them.
    pub const ALL: [AutoActionKind; 5] = [
        AutoActionKind::AutoForward,
        AutoActionKind::AutoAlert,
        AutoActionKind::AutoCorrelateReports,
        AutoActionKind::AutoDelete,
        AutoActionKind::AutoModify,
    ];

    /// Its object identifier.
    #[expect(clippy::expect_used, reason = "the arcs are constants of this crate, each in a test")]
    pub fn oid(self) -> Oid {
        let [a, b, c] = AUTO_ACTION;
        Oid::from_content(&[a, b, c, self as u8]).expect("arcs of constants")
    }

    /// The auto-action of this identifier.
    pub fn from_oid(oid: &Oid) -> Option<AutoActionKind> {
        let [n] = oid.content().strip_prefix(&AUTO_ACTION)? else { return None };
        AutoActionKind::ALL.into_iter().find(|kind| *kind as u8 == *n)
    }
}

/// AutoActionRegistration.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AutoActionRegistration {
    /// auto-action-type.
    pub auto_action_type: Oid,
    /// registration-identifier, 1 or more; 1 is the default.
    pub identifier: i64,
    /// registration-parameter.
    pub parameter: Option<Value>,
}

/// AutoActionDeregistration.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AutoActionDeregistration {
    /// auto-action-type.
    pub auto_action_type: Oid,
    /// registration-identifier, 1 or more; 1 is the default.
    pub identifier: i64,
}

const IDENTIFIER: Tag = Tag::context(0);
const PARAMETER: Tag = Tag::context(1);

fn write_identifier(w: &mut Writer, identifier: i64) {
    if identifier != 1 {
        wire::write_integer(w, 0, identifier);
    }
}

impl AutoActionRegistration {
    /// Reads the SEQUENCE.
    ///
    /// # Errors
    /// Malformed BER, or no type; the field is named.
    pub fn read(e: &Element<'_>) -> Result<AutoActionRegistration, Error> {
        let name = "auto-action-registration";
        let mut members = require(e, u::SEQUENCE).field(name)?.children().field(name)?;
        let kind = members.require(u::OID).and_then(|e| e.oid()).field("auto-action-type")?;
        let identifier = members.optional(IDENTIFIER).field("registration-identifier")?;
        let identifier = identifier.map(|e| wire::integer(&e)).transpose();
        let parameter = members.optional(PARAMETER).field("registration-parameter")?;
        let parameter = parameter.map(|e| Value::keep_inner(&e)).transpose();
        members.finish().field(name)?;
        Ok(AutoActionRegistration {
            auto_action_type: kind,
            identifier: identifier.field("registration-identifier")?.unwrap_or(1),
            parameter: parameter.field("registration-parameter")?,
        })
    }

    /// Appends the SEQUENCE.
    pub fn write(&self, w: &mut Writer) {
        w.constructed(u::SEQUENCE, |w| {
            w.oid(u::OID, &self.auto_action_type);
            write_identifier(w, self.identifier);
            if let Some(parameter) = &self.parameter {
                explicit(w, 1, |w| parameter.write(w));
            }
        });
    }
}

impl AutoActionDeregistration {
    /// Reads the SEQUENCE.
    ///
    /// # Errors
    /// Malformed BER, or no type; the field is named.
    pub fn read(e: &Element<'_>) -> Result<AutoActionDeregistration, Error> {
        let name = "auto-action-deregistration";
        let mut members = require(e, u::SEQUENCE).field(name)?.children().field(name)?;
        let kind = members.require(u::OID).and_then(|e| e.oid()).field("auto-action-type")?;
        let identifier = members.optional(IDENTIFIER).field("registration-identifier")?;
        let identifier = identifier.map(|e| wire::integer(&e)).transpose();
        members.finish().field(name)?;
        let identifier = identifier.field("registration-identifier")?.unwrap_or(1);
        Ok(AutoActionDeregistration { auto_action_type: kind, identifier })
    }

    /// Appends the SEQUENCE.
    pub fn write(&self, w: &mut Writer) {
        w.constructed(u::SEQUENCE, |w| {
            w.oid(u::OID, &self.auto_action_type);
            write_identifier(w, self.identifier);
        });
    }
}

/// AlertDestination.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AlertDestination {
    /// alert-address: EXTERNAL, the whole element.
    pub address: Bytes,
    /// alert-qualifier.
    pub qualifier: Option<Bytes>,
}

impl AlertDestination {
    fn read(e: &Element<'_>) -> Result<AlertDestination, Error> {
        let mut members = require(e, u::SEQUENCE)?.children()?;
        let address = p1::wire::keep(&members.require(u::EXTERNAL)?);
        let qualifier = members.optional(u::OCTET_STRING)?;
        let qualifier = qualifier.map(|e| e.octets().map(|o| Bytes::from(o.into_owned())));
        members.finish()?;
        Ok(AlertDestination { address, qualifier: qualifier.transpose()? })
    }

    fn write(&self, w: &mut Writer) {
        w.constructed(u::SEQUENCE, |w| {
            w.raw(&self.address);
            if let Some(qualifier) = &self.qualifier {
                w.string(u::OCTET_STRING, qualifier);
            }
        });
    }
}

/// AutoAlertRegistrationParameter: for which entries the user is alerted, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AutoAlert {
    /// filter: which entries; all where it is absent.
    pub filter: Option<Filter>,
    /// alert-destinations, besides an association of the user.
    pub destinations: Vec<AlertDestination>,
    /// requested-attributes: what the alert has of the entry.
    pub requested_attributes: Option<Vec<AttributeSelection>>,
    /// suppress-alert-destinations: no destination is alerted where the user's association takes the
    /// alert (1994). TRUE by default.
    pub suppress_destinations: bool,
}

impl Default for AutoAlert {
    fn default() -> AutoAlert {
        AutoAlert {
            filter: None,
            destinations: Vec::new(),
            requested_attributes: None,
            suppress_destinations: true,
        }
    }
}

impl AutoAlert {
    /// Reads the SET.
    ///
    /// # Errors
    /// Malformed BER; the field is named.
    pub fn read(e: &Element<'_>) -> Result<AutoAlert, Error> {
        let mut filter = Member::new("filter");
        let mut destinations = Member::new("alert-destinations");
        let mut requested = Member::new("requested-attributes");
        let mut suppress = Member::new("suppress-alert-destinations");
        let members = read_set(require(e, u::SET).field("auto-alert")?, |m| match number(m) {
            0 => filter.once(m, |m| Filter::read(&m.only_child()?)),
            1 => destinations
                .once(m, |m| wire::list(m, u::SEQUENCE, MAX_DESTINATIONS, AlertDestination::read)),
            2 => requested.once(m, selector::read_selection),
            3 => suppress.once(m, wire::boolean),
            _ => Ok(false),
        });
        members.field("auto-alert")?;
        Ok(AutoAlert {
            filter: filter.optional(),
            destinations: destinations.or_default(),
            requested_attributes: requested.optional(),
            suppress_destinations: suppress.optional().unwrap_or(true),
        })
    }

    /// Appends the SET.
    pub fn write(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            if let Some(filter) = &self.filter {
                explicit(w, 0, |w| filter.write(w));
            }
            wire::write_some(w, 1, u::SEQUENCE, &self.destinations, AlertDestination::write);
            selector::write_selection(w, 2, self.requested_attributes.as_ref());
            wire::write_boolean(w, 3, self.suppress_destinations, true);
        });
    }

    /// The registration of this alert, under this identifier.
    pub fn registration(&self, identifier: i64) -> AutoActionRegistration {
        AutoActionRegistration {
            auto_action_type: AutoActionKind::AutoAlert.oid(),
            identifier,
            parameter: Some(Value::written(|w| self.write(w))),
        }
    }

    /// The alert that a registration is for.
    ///
    /// # Errors
    /// It is another auto-action's, has no parameter, or a malformed one.
    pub fn from_registration(registration: &AutoActionRegistration) -> Result<AutoAlert, Error> {
        if AutoActionKind::from_oid(&registration.auto_action_type)
            != Some(AutoActionKind::AutoAlert)
        {
            return Err(Fault::Value("auto-alert")).field("auto-action-type");
        }
        let parameter = registration.parameter.as_ref().ok_or(Fault::Missing(u::SET));
        AutoAlert::read(&parameter.field("registration-parameter")?.element()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_identifiers() {
        for kind in AutoActionKind::ALL {
            assert_eq!(AutoActionKind::from_oid(&kind.oid()), Some(kind));
        }
        assert_eq!(AutoActionKind::AutoAlert.oid().to_string(), "2.6.4.4.1");
        assert_eq!(AutoActionKind::from_oid(&"2.6.4.3.1".parse().unwrap()), None);
    }

    #[test]
    fn an_alert_is_registered_with_its_parameter() {
        // auto-alert, identifier 2, parameter { requested-attributes {} }
        let octets =
            [0x30, 0x13, 6, 4, 0x56, 4, 4, 1, 0xa0, 3, 2, 1, 2, 0xa1, 6, 0x31, 4, 0xa2, 2, 0x31, 0];
        let registration = AutoActionRegistration::read(&Element::parse(&octets).unwrap()).unwrap();
        let alert = AutoAlert::from_registration(&registration).unwrap();
        let expected = AutoAlert { requested_attributes: Some(vec![]), ..AutoAlert::default() };
        assert_eq!(alert, expected);
        assert_eq!(alert.registration(2), registration);
        let mut w = Writer::new();
        registration.write(&mut w);
        assert_eq!(w.as_slice(), octets);
        let none = AutoActionRegistration { parameter: None, ..registration };
        let error = AutoAlert::from_registration(&none).unwrap_err();
        assert_eq!(error.field, Some("registration-parameter"));
    }
}
