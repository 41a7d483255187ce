//! What follows when a peer refuses an association of ours, by its reason.
//!
//! | Reason | Then |
//! |---|---|
//! | busy, or none that says more | the usual wait; what was to be recovered is kept, where nothing is said a few times |
//! | who we are: authentication, validation, security context | a long wait; the channel counts as down |
//! | dialogue mode | the other mode at once; where that is refused too, a long wait |
//! | cannot recover | a fresh association at once, which sends all again |

use crate::api::ChannelId;
use crate::context::Context;
use crate::event::{Kind, Level};
use crate::machines::Outbound;
use crate::node::Node;
use base::ber::Element;
use base::{AssociationId, Now};
use osi::api::{Dialogue, RefuseReason};
use osi::shown;
use p1::bind::MtaBindError;

/// What a channel remembers of refusals.
#[derive(Debug, Default)]
pub(crate) struct Refused {
    /// Trying again changes nothing before somebody changes a configuration.
    down: bool,
    /// The mode that took the place of the configured one.
    dialogue: Option<Dialogue>,
    /// Both modes were tried since an association was last open.
    turned: bool,
    /// Our name or password was refused since then.
    identity: bool,
}

impl Refused {
    /// Whether our name or password was refused since it was open last.
    pub(crate) fn is_identity(&self) -> bool {
        self.identity
    }

    pub(crate) fn is_down(&self) -> bool {
        self.down
    }

    /// A long wait follows; after it, either mode may be tried again.
    pub(crate) fn give_up(&mut self) {
        self.down = true;
        self.turned = false;
    }

    /// What is still so where the channel begins anew with another configuration: how the peer
    /// counts what it refused.
    pub(crate) fn reopened(&self) -> Refused {
        Refused { identity: self.identity, ..Refused::default() }
    }

    /// An association is open: the mode it has is kept for the next.
    pub(crate) fn opened(&mut self) {
        self.down = false;
        self.turned = false;
        self.identity = false;
    }

    /// The mode to propose.
    pub(crate) fn dialogue(&self, configured: Dialogue) -> Dialogue {
        self.dialogue.unwrap_or(configured)
    }

    /// The mode to propose after this one was refused, once.
    fn turn(&mut self, refused: Dialogue) -> Option<Dialogue> {
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
enum About {
    /// It may be different next time.
    Passing,
    /// Our name or password, or what security it asks for.
    Identity,
    Dialogue,
}

fn about(reason: RefuseReason, error: Option<MtaBindError>) -> About {
    match error {
        Some(
            MtaBindError::AuthenticationError
            | MtaBindError::UnacceptableSecurityContext
            | MtaBindError::InadequateAssociationConfidentiality,
        ) => About::Identity,
        Some(MtaBindError::UnacceptableDialogueMode) => About::Dialogue,
        Some(MtaBindError::Busy | MtaBindError::Other(_)) => About::Passing,
        None => match reason {
            RefuseReason::ValidationFailure => About::Identity,
            RefuseReason::DialogueMode => About::Dialogue,
            RefuseReason::Busy
            | RefuseReason::CannotRecover
            | RefuseReason::Bind
            | RefuseReason::ApplicationContext
            | RefuseReason::Unspecified => About::Passing,
        },
    }
}

fn name_of(dialogue: Dialogue) -> &'static str {
    match dialogue {
        Dialogue::Monologue => "monologue",
        Dialogue::TwoWayAlternate => "two-way-alternate",
    }
}

impl Node {
    pub(crate) fn refused(
        &mut self,
        now: Now,
        id: AssociationId,
        channel: ChannelId,
        reason: RefuseReason,
        bind_error: Option<&[u8]>,
        detail: &str,
    ) {
        let read = bind_error.map(|e| (e, Element::parse(e).and_then(|e| MtaBindError::read(&e))));
        let (error, text) = match read {
            Some((_, Ok(error))) => (Some(error), format!("refused: {error}: {detail}")),
            Some((said, Err(unread))) => {
                let said = shown::value(said);
                (None, format!("refused: {reason:?}: {detail}; bind error: {unread}: {said}"))
            }
            None => (None, format!("refused: {reason:?}: {detail}")),
        };
        let text = self.outbound.counted_perhaps(channel, error, text);
        let busy = reason == RefuseReason::Busy || error == Some(MtaBindError::Busy);
        // Not a word on recoveries: the layers below refused before anybody looked at it.
        let below = reason == RefuseReason::Unspecified && bind_error.is_none();
        if (busy || below) && self.cx.recovery.is_offered(id) {
            // It may recover yet: what is to go on stays as it is.
            if busy {
                self.cx.recovery.was_answered(id);
            }
            return self.association_over(now, id, Kind::AssociationRefused, &text);
        }
        let recovering = self.cx.recovery.take_offered(id);
        match about(reason, error) {
            About::Passing => self.association_over(now, id, Kind::AssociationRefused, &text),
            About::Identity => {
                let remedy = self.cx.identity_remedy(channel);
                if let Some(state) = self.outbound.channels.get_mut(&channel) {
                    state.refused.identity = true;
                }
                self.refused_for_long(now, id, channel, format!("{text}; {remedy}"));
            }
            About::Dialogue => self.refused_dialogue(now, id, channel, &text),
        }
        if let Some(offered) = recovering {
            // Fall back to a fresh association, sending all again.
            self.give_up_lost(now, offered.lost);
            // What the bind error is about, a fresh one does not change.
            let of_recovery = matches!(about(reason, error), About::Passing) && error.is_none();
            if let Some(state) = self.outbound.channels.get_mut(&channel).filter(|_| of_recovery) {
                state.not_before = None;
                state.failures = 0;
            }
        }
    }

    fn refused_dialogue(&mut self, now: Now, id: AssociationId, channel: ChannelId, text: &str) {
        let refused = match self.cx.associations.get(&id).is_some_and(|link| link.two_way) {
            true => Dialogue::TwoWayAlternate,
            false => Dialogue::Monologue,
        };
        let other = self.outbound.channels.get_mut(&channel).and_then(|c| c.refused.turn(refused));
        let Some(other) = other else {
            let text = format!("{text}; it takes neither dialogue mode: check its configuration");
            return self.refused_for_long(now, id, channel, text);
        };
        let text = format!("{text}; {} was proposed, next is {}", name_of(refused), name_of(other));
        self.association_over(now, id, Kind::AssociationRefused, &text);
        if let Some(state) = self.outbound.channels.get_mut(&channel) {
            state.not_before = None;
        }
    }

    /// It was refused for something that somebody has to change.
    fn refused_for_long(&mut self, now: Now, id: AssociationId, channel: ChannelId, text: String) {
        self.cx
            .event(Level::Error, Kind::AssociationRefused, text.clone())
            .association(id)
            .channel(Some(channel));
        if let Some(link) = self.cx.associations.get_mut(&id) {
            link.given_up = Some(text);
        }
        self.association_over(now, id, Kind::AssociationRefused, "refused");
    }
}

impl Outbound {
    /// Busy, where our name or password was refused before, may be for that.
    pub(crate) fn counted_perhaps(
        &self,
        channel: ChannelId,
        error: Option<MtaBindError>,
        text: String,
    ) -> String {
        let refused = self.channels.get(&channel).is_some_and(|state| state.refused.identity);
        if error != Some(MtaBindError::Busy) || !refused {
            return text;
        }
        format!(
            "{text}; it refused our name or password before, and may still be counting that: \
             `mta reload` at the peer ends it, else time does"
        )
    }
}

impl Context {
    /// What to look at, here and there.
    pub(crate) fn identity_remedy(&self, channel: ChannelId) -> String {
        let Some((peer, config)) = self.peer_and_channel(channel) else { return String::new() };
        format!(
            "we bind as {:?}: check password and own_name of peer {:?} here, and the name, password \
             and addresses it expects of us there; next try in {:?} at most",
            peer.own_name.0, peer.name, config.reopen.refused
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_about_what_its_number_says() {
        let about = |reason, number: Option<i64>| match about(
            reason,
            number.map(MtaBindError::from_number),
        ) {
            About::Passing => "passing",
            About::Identity => "identity",
            About::Dialogue => "dialogue",
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
        let mut refused = Refused::default();
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
