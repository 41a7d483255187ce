//! What follows when a peer refuses an association of ours, by its reason.
//!
//! | Reason | Then |
//! |---|---|
//! | busy, or none given | the usual wait; what was to be recovered is kept, without a reason a few times only |
//! | who we are: authentication, validation, security context | a long wait; the channel counts as down |
//! | dialogue mode | the other mode at once; where that is refused too, a long wait |
//! | cannot recover | a fresh association at once, which sends all again |

use osi::api::{Dialogue, RefuseReason};
use p1::bind::MtaBindError;

/// What a channel remembers of refusals.
#[derive(Debug, Default)]
pub struct ChannelRefusals {
    /// Trying again changes nothing before somebody changes a configuration.
    pub down: bool,
    /// The mode that took the place of the configured one.
    pub dialogue: Option<Dialogue>,
    /// Both modes were tried since an association was last open.
    pub turned: bool,
    /// Our name or password was refused since then.
    pub identity: bool,
}

impl ChannelRefusals {
    /// Whether our name or password was refused since it was open last.
    pub fn is_identity(&self) -> bool {
        self.identity
    }

    /// Whether trying again changes nothing before somebody changes a configuration.
    pub fn is_down(&self) -> bool {
        self.down
    }

    /// A long wait follows; after it, either mode may be tried again.
    pub fn give_up(&mut self) {
        self.down = true;
        self.turned = false;
    }

    /// What is still so where the channel begins anew with another configuration: how the peer
    /// counts what it refused.
    pub fn reopened(&self) -> ChannelRefusals {
        ChannelRefusals { identity: self.identity, ..ChannelRefusals::default() }
    }

    /// An association is open: the mode it has is kept for the next.
    pub fn opened(&mut self) {
        self.down = false;
        self.turned = false;
        self.identity = false;
    }

    /// The mode to propose.
    pub fn dialogue(&self, configured: Dialogue) -> Dialogue {
        self.dialogue.unwrap_or(configured)
    }

    /// The mode to propose after this one was refused, once.
    pub fn turn(&mut self, refused: Dialogue) -> Option<Dialogue> {
        let other = match refused {
            Dialogue::Monologue => Dialogue::TwoWayAlternate,
            Dialogue::TwoWayAlternate => Dialogue::Monologue,
        };
        let first = !std::mem::replace(&mut self.turned, true);
        self.dialogue = first.then_some(other);
        self.dialogue
    }
}

/// What a refusal is about.
pub enum RefusalSubject {
    /// It may be different next time.
    Passing,
    /// Our name or password, or what security it asks for.
    Identity,
    /// The dialogue mode.
    Dialogue,
}

/// A dialogue mode as the configuration names it.
pub fn name_of(dialogue: Dialogue) -> &'static str {
    match dialogue {
        Dialogue::Monologue => "monologue",
        Dialogue::TwoWayAlternate => "two-way-alternate",
    }
}

/// What a refusal is about, by its reason and the error in it.
pub fn about(reason: RefuseReason, error: Option<MtaBindError>) -> RefusalSubject {
    match error {
        Some(
            MtaBindError::AuthenticationError
            | MtaBindError::UnacceptableSecurityContext
            | MtaBindError::InadequateAssociationConfidentiality,
        ) => RefusalSubject::Identity,
        Some(MtaBindError::UnacceptableDialogueMode) => RefusalSubject::Dialogue,
        Some(MtaBindError::Busy | MtaBindError::Other(_)) => RefusalSubject::Passing,
        None => match reason {
            RefuseReason::ValidationFailure => RefusalSubject::Identity,
            RefuseReason::DialogueMode => RefusalSubject::Dialogue,
            RefuseReason::Busy
            | RefuseReason::CannotRecover
            | RefuseReason::Bind
            | RefuseReason::ApplicationContext
            | RefuseReason::Unspecified => RefusalSubject::Passing,
        },
    }
}

/// The reason beside a bind error of ours. X.410 mode has no bind errors: the reason stands for it there.
pub fn reason(error: MtaBindError) -> RefuseReason {
    match error {
        MtaBindError::Busy => RefuseReason::Busy,
        MtaBindError::UnacceptableDialogueMode => RefuseReason::DialogueMode,
        _ => RefuseReason::Bind,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_about_what_its_number_means() {
        let about = |reason, number: Option<i64>| match about(
            reason,
            number.map(MtaBindError::from_number),
        ) {
            RefusalSubject::Passing => "passing",
            RefusalSubject::Identity => "identity",
            RefusalSubject::Dialogue => "dialogue",
        };
        let of_bind: Vec<_> = (0..7).map(|n| about(RefuseReason::Bind, Some(n))).collect();
        let [id, pass] = ["identity", "passing"];
        assert_eq!(of_bind, [pass, pass, id, "dialogue", id, id, pass]);
        // X.410 has a refuseReason of the same number and no bind error.
        assert_eq!(about(RefuseReason::ValidationFailure, None), "identity");
        assert_eq!(about(RefuseReason::DialogueMode, None), "dialogue");
        assert_eq!(about(RefuseReason::Busy, None), "passing");
        assert_eq!(about(RefuseReason::Bind, None), "passing");
    }

    #[test]
    fn each_mode_is_tried_once_until_one_works() {
        let mut refused = ChannelRefusals::default();
        let configured = Dialogue::TwoWayAlternate;
        assert_eq!(refused.dialogue(configured), configured);
        assert_eq!(refused.turn(configured), Some(Dialogue::Monologue));
        assert_eq!(refused.dialogue(configured), Dialogue::Monologue);
        refused.opened();
        assert_eq!(refused.dialogue(configured), Dialogue::Monologue, "remembered");
        assert_eq!(refused.turn(Dialogue::Monologue), Some(configured), "it changed its mind");
        assert_eq!(refused.turn(configured), None, "neither");
        assert_eq!(refused.dialogue(configured), configured, "as configured after the long wait");
        refused.give_up();
        assert!(refused.is_down());
        assert_eq!(refused.turn(configured), Some(Dialogue::Monologue), "either once more");
        assert_eq!(refused.turn(Dialogue::Monologue), None);
        refused.opened();
        assert!(!refused.is_down());
    }
}
