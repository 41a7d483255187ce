//! auto-forward of 1988: which entries are forwarded, and how (X.413 13.1, X.420 annex on auto-actions).
//!
//! The form is that of the ITU's later modules, which keep it for the contexts of 1988 (`SET`, explicit tags). No
//! registration of another implementation was at hand: it is *unproven*.

use crate::auto_action::{AutoActionKind, AutoActionRegistration};
use crate::filter::Filter;
use crate::limits::MAX_FORWARD_RECIPIENTS;
use crate::registration::number;
use crate::value::Value;
use crate::wire::{self, explicit, require};
use base::ber::{Element, Error, Fault, Field, Member, Tag, Writer, read_set, universal as u};
use p1::extension::Extensions;
use p1::flags::{PerMessageIndicators, Priority};
use p1::names::ORName;
use p1::p3::PerRecipientSubmissionFields;
use p1::time::Time;
use p1::wire::tag;

/// AutoForwardRegistrationParameter of 1988.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AutoForward {
    /// filter: which entries; all where it is absent.
    pub filter: Option<Filter>,
    /// auto-forward-arguments.
    pub arguments: AutoForwardArguments,
    /// delete-after-auto-forwarding.
    pub delete_after: bool,
    /// forwarding-information: comment, cover note and prefix of identifiers, kept as an element.
    pub information: Option<Value>,
}

/// AutoForwardArguments: the envelope of what is forwarded, but for what the message determines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AutoForwardArguments {
    /// originator-name: the user of the store.
    pub originator: ORName,
    /// content-identifier.
    pub content_identifier: Option<String>,
    /// priority; absent: that of the message.
    pub priority: Option<Priority>,
    /// per-message-indicators.
    pub indicators: PerMessageIndicators,
    /// deferred-delivery-time.
    pub deferred_delivery_time: Option<Time>,
    /// extensions.
    pub extensions: Extensions,
    /// per-recipient-fields, 1 or more.
    pub recipients: Vec<PerRecipientSubmissionFields>,
}

const DEFERRED: Tag = Tag::context(0);
const RECIPIENTS: Tag = Tag::context(1);
const EXTENSIONS: Tag = Tag::context(2);
const ARGUMENTS: Tag = Tag::context(1);

impl AutoForwardArguments {
    fn read(e: &Element<'_>) -> Result<AutoForwardArguments, Error> {
        let mut originator = Member::new("originator-name");
        let mut content_identifier = Member::new("content-identifier");
        let (mut priority, mut indicators) =
            (Member::new("priority"), Member::new("per-message-indicators"));
        let (mut deferred, mut extensions) =
            (Member::new("deferred-delivery-time"), Member::new("extensions"));
        let mut recipients = Member::new("per-recipient-fields");
        read_set(require(e, u::SET)?, |m| match m.tag {
            tag::OR_NAME => originator.once(m, ORName::read),
            tag::CONTENT_IDENTIFIER => content_identifier.once(m, p1::names::content_identifier),
            tag::PRIORITY => priority.once(m, Priority::read),
            tag::PER_MESSAGE_INDICATORS => indicators.once(m, PerMessageIndicators::read),
            DEFERRED => deferred.once(m, Time::read),
            EXTENSIONS => extensions.once(m, Extensions::read),
            RECIPIENTS => recipients.once(m, |m| {
                p1::wire::list(m, MAX_FORWARD_RECIPIENTS, PerRecipientSubmissionFields::read)
            }),
            _ => Ok(false),
        })?;
        let recipients: Vec<_> = recipients.required(RECIPIENTS)?;
        if recipients.is_empty() {
            return Err(Fault::Missing(u::SET)).field("per-recipient-fields");
        }
        Ok(AutoForwardArguments {
            originator: originator.required(tag::OR_NAME)?,
            content_identifier: content_identifier.optional(),
            priority: priority.optional(),
            indicators: indicators.or_default(),
            deferred_delivery_time: deferred.optional(),
            extensions: extensions.or_default(),
            recipients,
        })
    }

    fn write(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            self.originator.write(w);
            if let Some(identifier) = &self.content_identifier {
                p1::wire::write_latin1(w, tag::CONTENT_IDENTIFIER, identifier);
            }
            if let Some(priority) = self.priority {
                priority.write(w);
            }
            if self.indicators != PerMessageIndicators::default() {
                self.indicators.write(w);
            }
            if let Some(time) = &self.deferred_delivery_time {
                time.write_as(w, DEFERRED);
            }
            w.constructed(RECIPIENTS, |w| self.recipients.iter().for_each(|r| r.write(w)));
            self.extensions.write_as(w, EXTENSIONS);
        });
    }
}

impl AutoForward {
    /// Reads the SET.
    ///
    /// # Errors
    /// Malformed BER, no originator or no recipient; the field is named.
    pub fn read(e: &Element<'_>) -> Result<AutoForward, Error> {
        let (mut filter, mut arguments) =
            (Member::new("filter"), Member::new("auto-forward-arguments"));
        let (mut delete, mut information) =
            (Member::new("delete-after-auto-forwarding"), Member::new("forwarding-information"));
        let members = read_set(require(e, u::SET).field("auto-forward")?, |m| match number(m) {
            0 => filter.once(m, |m| Filter::read(&m.only_child()?)),
            1 => arguments.once(m, |m| AutoForwardArguments::read(&m.only_child()?)),
            2 => delete.once(m, wire::boolean),
            3 => information.once(m, Value::keep_inner),
            _ => Ok(false),
        });
        members.field("auto-forward")?;
        Ok(AutoForward {
            filter: filter.optional(),
            arguments: arguments.required(ARGUMENTS)?,
            delete_after: delete.or_default(),
            information: information.optional(),
        })
    }

    /// Appends the SET.
    pub fn write(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            if let Some(filter) = &self.filter {
                explicit(w, 0, |w| filter.write(w));
            }
            explicit(w, 1, |w| self.arguments.write(w));
            wire::write_boolean(w, 2, self.delete_after, false);
            if let Some(information) = &self.information {
                explicit(w, 3, |w| information.write(w));
            }
        });
    }

    /// The registration of this auto-forward, under this identifier.
    pub fn registration(&self, identifier: i64) -> AutoActionRegistration {
        AutoActionRegistration {
            auto_action_type: AutoActionKind::AutoForward.oid(),
            identifier,
            parameter: Some(Value::written(|w| self.write(w))),
        }
    }

    /// The auto-forward that a registration is for.
    ///
    /// # Errors
    /// It is another auto-action's, has no parameter, or a malformed one.
    pub fn from_registration(registration: &AutoActionRegistration) -> Result<AutoForward, Error> {
        let kind = AutoActionKind::from_oid(&registration.auto_action_type);
        if kind != Some(AutoActionKind::AutoForward) {
            return Err(Fault::Value("auto-forward")).field("auto-action-type");
        }
        let parameter = registration.parameter.as_ref().ok_or(Fault::Missing(u::SET));
        AutoForward::read(&parameter.field("registration-parameter")?.element()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forward() -> AutoForward {
        let name = |text: &str| text.parse::<ORName>().unwrap();
        AutoForward {
            filter: Some(Filter::And(Vec::new())),
            arguments: AutoForwardArguments {
                originator: name("/C=XX/ADMD=A/S=Jones"),
                content_identifier: Some("F1".to_owned()),
                priority: Some(Priority::Urgent),
                recipients: vec![PerRecipientSubmissionFields {
                    recipient: name("/C=XX/ADMD=A/S=Smith"),
                    ..PerRecipientSubmissionFields::default()
                }],
                ..AutoForwardArguments::default()
            },
            delete_after: true,
            information: Some(Value::from_integer(1)),
        }
    }

    #[test]
    fn a_registration_is_read_as_it_was_written() {
        let forward = forward();
        let registration = forward.registration(3);
        assert_eq!(AutoForward::from_registration(&registration).unwrap(), forward);
        let least = AutoForward {
            filter: None,
            arguments: AutoForwardArguments {
                content_identifier: None,
                priority: None,
                ..forward.arguments
            },
            delete_after: false,
            information: None,
        };
        assert_eq!(AutoForward::from_registration(&least.registration(1)).unwrap(), least);
    }

    #[test]
    fn what_lacks_a_recipient_or_an_originator_is_named() {
        let mut none = forward();
        none.arguments.recipients.clear();
        let error = AutoForward::from_registration(&none.registration(1)).unwrap_err();
        assert_eq!(error.field, Some("per-recipient-fields"));
        let empty = [0x31, 4, 0xa1, 2, 0x31, 0];
        let error = AutoForward::read(&Element::parse(&empty).unwrap()).unwrap_err();
        assert!(error.to_string().contains("per-recipient-fields"), "{error}");
        let other = forward().registration(1);
        let other =
            AutoActionRegistration { auto_action_type: AutoActionKind::AutoAlert.oid(), ..other };
        assert!(AutoForward::from_registration(&other).is_err());
    }
}
