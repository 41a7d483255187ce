//! The controls of a user's deliveries that are in force.

use super::Registration;
use p1::content_type::ContentType;
use p1::flags::Priority;
use p1::p3::{AccessError, Controls, RefusedArgument, Waiting};
use std::fmt;

/// What is to be delivered, as far as controls look at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deliverable<'a> {
    /// A report, or a message.
    pub is_report: bool,
    /// The grade of delivery.
    pub priority: Priority,
    /// Octets of content.
    pub length: u64,
    /// Its type, where it is known.
    pub content_type: Option<&'a ContentType>,
}

/// Which control holds a delivery back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldBy {
    /// permissible-operations, without message-delivery.
    Messages,
    /// permissible-operations, without report-delivery.
    Reports,
    /// permissible-lowest-priority.
    Priority(Priority),
    /// permissible-maximum-content-length, octets.
    Length(u64),
    /// permissible-content-types.
    ContentType,
    /// No control: the security-context of the bind.
    Context,
}

impl fmt::Display for HeldBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HeldBy::Messages => f.write_str("its user takes no messages for now"),
            HeldBy::Reports => f.write_str("its user takes no reports for now"),
            HeldBy::Priority(lowest) => {
                write!(f, "its user holds back what is below {}", lowest.name())
            }
            HeldBy::Length(most) => {
                write!(f, "its user holds back contents above {most} octets")
            }
            HeldBy::ContentType => f.write_str("its user holds back contents of this type"),
            HeldBy::Context => {
                f.write_str("it is outside the security-context with which its user is bound")
            }
        }
    }
}

/// The controls in force for a user. The default permits everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryControls {
    messages: bool,
    reports: bool,
    max_content_length: Option<u64>,
    lowest_priority: Priority,
    content_types: Option<Vec<ContentType>>,
}

impl Default for DeliveryControls {
    fn default() -> DeliveryControls {
        DeliveryControls {
            messages: true,
            reports: true,
            max_content_length: None,
            lowest_priority: Priority::NonUrgent,
            content_types: None,
        }
    }
}

impl DeliveryControls {
    /// Those in force when a user binds who has registered this: his default-delivery-controls.
    ///
    /// # Errors
    /// As [`DeliveryControls::update`].
    pub fn from_registration(registration: &Registration) -> Result<DeliveryControls, AccessError> {
        let mut controls = DeliveryControls::default();
        if let Some(registered) = &registration.default_controls {
            controls.set(registered, registration)?;
        }
        Ok(controls)
    }

    /// Takes in a user's delivery-control. What is absent from it stays as it is; restrict of FALSE gives his
    /// default-delivery-controls again.
    ///
    /// # Errors
    /// control-violates-registration if it would permit more than is registered; operation-refused for a
    /// control that is not offered, or a length below 0. Nothing changes then.
    pub fn update(
        &mut self,
        argument: &Controls,
        registration: &Registration,
    ) -> Result<(), AccessError> {
        if !argument.restrict {
            *self = DeliveryControls::from_registration(registration)?;
            return Ok(());
        }
        let mut after = self.clone();
        after.set(argument, registration)?;
        *self = after;
        Ok(())
    }

    fn set(&mut self, new: &Controls, registration: &Registration) -> Result<(), AccessError> {
        match new.undone() {
            Ok(None) => {}
            Ok(Some(undone)) => return Err(undone.unavailable()),
            Err(_) => return Err(RefusedArgument::PERMISSIBLE_SECURITY_CONTEXT.unavailable()),
        }
        if let Some(length) = new.max_content_length {
            let length = u64::try_from(length)
                .map_err(|_| RefusedArgument::PERMISSIBLE_MAX_CONTENT_LENGTH.unacceptable())?;
            if registration.max_content_length.is_some_and(|registered| length > registered) {
                return Err(AccessError::ControlViolatesRegistration);
            }
            self.max_content_length = Some(length);
        }
        if let Some(types) = &new.content_types {
            let registered = |t: &ContentType| {
                registration.content_types.as_ref().is_none_or(|all| all.contains(t))
            };
            if !types.iter().all(registered) {
                return Err(AccessError::ControlViolatesRegistration);
            }
            self.content_types = Some(types.clone());
        }
        self.messages = new.messages.unwrap_or(self.messages);
        self.reports = new.probes_or_reports.unwrap_or(self.reports);
        self.lowest_priority = new.lowest_priority.unwrap_or(self.lowest_priority);
        Ok(())
    }

    /// Whether they permit everything.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == DeliveryControls::default()
    }

    /// What they hold back, each in words.
    #[must_use]
    pub fn in_words(&self) -> Vec<String> {
        let types = self.content_types.as_ref().map(|types| {
            let types: Vec<String> = types.iter().map(ContentType::to_string).collect();
            format!("contents of other types than {}", types.join(", "))
        });
        let lowest = self.lowest_priority;
        [
            (!self.messages).then(|| "messages".to_owned()),
            (!self.reports).then(|| "reports".to_owned()),
            (lowest != Priority::NonUrgent).then(|| format!("what is below {}", lowest.name())),
            self.max_content_length.map(|most| format!("contents above {most} octets")),
            types,
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// Whether what they permit depends on content types.
    #[must_use]
    pub fn look_at_types(&self) -> bool {
        self.content_types.is_some()
    }

    /// The control that holds a delivery back, if one does. A report is held back only as an operation: it
    /// has no priority, and no content of its own.
    #[must_use]
    pub fn holds(&self, what: &Deliverable<'_>) -> Option<HeldBy> {
        if what.is_report {
            return (!self.reports).then_some(HeldBy::Reports);
        }
        if !self.messages {
            return Some(HeldBy::Messages);
        }
        if rank(what.priority) < rank(self.lowest_priority) {
            return Some(HeldBy::Priority(self.lowest_priority));
        }
        if let Some(most) = self.max_content_length.filter(|most| what.length > *most) {
            return Some(HeldBy::Length(most));
        }
        let types = self.content_types.as_ref()?;
        (!types.contains(what.content_type?)).then_some(HeldBy::ContentType)
    }

    /// Notes in the result of delivery-control that this waits, and for which reasons: all that hold it.
    pub fn note(&self, what: &Deliverable<'_>, waiting: &mut Waiting) {
        if self.holds(what).is_none() {
            return;
        }
        if what.is_report {
            waiting.probes_or_reports = true;
            return;
        }
        waiting.messages |= !self.messages;
        waiting.low_priority |= rank(what.priority) < rank(self.lowest_priority);
        waiting.long_content |= self.max_content_length.is_some_and(|most| what.length > most);
        let Some((types, own)) = self.content_types.as_ref().zip(what.content_type) else { return };
        if !types.contains(own) && !waiting.content_types.contains(own) {
            waiting.content_types.push(own.clone());
        }
    }
}

fn rank(priority: Priority) -> u8 {
    match priority {
        Priority::NonUrgent => 0,
        Priority::Normal => 1,
        Priority::Urgent => 2,
    }
}
