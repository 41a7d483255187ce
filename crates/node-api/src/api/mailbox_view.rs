//! What an operator sees of one mailbox.

use engine::registered::{DeliveryControls, Registration};
use serde::{Deserialize, Serialize};
use status::MailboxStatus;

/// All that is known of a mailbox and of what its user wants.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MailboxView {
    /// What waits, what is stored, who is bound.
    #[serde(flatten)]
    pub status: MailboxStatus,
    /// What its user has registered (X.411 8.4.1.1).
    pub registered: RegisteredView,
    /// What holds his deliveries back now; absent where nothing does, or he is not bound.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub controls: Option<ControlsView>,
}

/// What a user has registered. What is absent is not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegisteredView {
    /// Who gets what comes for him (recipient-assigned-alternate-recipient).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub redirected_to: Option<String>,
    /// deliverable-maximum-content-length, octets: longer contents are reported.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub max_content_length: Option<u64>,
    /// deliverable-content-types: others are reported.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub content_types: Option<Vec<String>>,
    /// default-delivery-controls: what is held back from each bind on, in words.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub holds_back: Vec<String>,
}

impl RegisteredView {
    /// That of a registration.
    #[must_use]
    pub fn new(of: &Registration) -> RegisteredView {
        let types = of.content_types.as_ref();
        RegisteredView {
            redirected_to: of.alternate.as_ref().map(|name| name.address.to_string()),
            max_content_length: of.max_content_length,
            content_types: types.map(|types| types.iter().map(ToString::to_string).collect()),
            holds_back: DeliveryControls::from_registration(of)
                .map(|controls| controls.in_words())
                .unwrap_or_default(),
        }
    }
}

/// The controls in force.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlsView {
    /// They are those that he has registered; else he set them with delivery-control.
    pub registered: bool,
    /// What they hold back, in words.
    pub holds_back: Vec<String>,
}
