//! Trace information and loop detection (X.411 12.2.1.1.1.3, 12.3.1 and 14.3.1).
//!
//! A domain adds one trace element when a message, probe or report enters it, and each MTA one
//! internal trace element (extension 38).

use crate::Engine;
use base::Utc;
use p1::extension::{ExtensionType, Extensions, number};
use p1::time::Time;
use p1::trace::{
    InternalTraceElement, OtherActions, TraceElement, add_internal_trace, internal_trace,
    update_internal_trace,
};
use p1::wire::bound;

/// The internal trace, oldest first; empty if it cannot be read.
pub(crate) fn internal(extensions: &Extensions) -> Vec<InternalTraceElement> {
    internal_trace(extensions).unwrap_or_default()
}

/// Whether these actions make another visit legitimate: the recipients have changed.
pub(crate) fn readdressed(actions: OtherActions) -> bool {
    actions.contains(OtherActions::REDIRECTED) || actions.contains(OtherActions::DL_OPERATION)
}

impl Engine {
    /// Whether this was here before and returns unchanged. Called before our own elements are
    /// added.
    pub(crate) fn loops(&self, trace: &[TraceElement], extensions: &Extensions) -> bool {
        let internal = internal(extensions);
        // A trace at its bound counts as a loop.
        if trace.len() >= bound::TRANSFERS || internal.len() >= bound::TRANSFERS {
            return true;
        }
        // From the last redirection or expansion on: the path starts anew there.
        let since = |positions: Option<usize>| positions.map_or(0, |at| at + 1);
        let fresh = since(trace.iter().rposition(|t| readdressed(t.additional.other_actions)));
        let mut domains = trace.iter().skip(fresh).map(|t| t.domain.same_as(&self.domain));
        // Our domain, then another: it left the domain and has returned.
        let returned = domains.any(|ours| ours) && domains.any(|ours| !ours);
        let fresh = since(internal.iter().rposition(|t| readdressed(t.additional.other_actions)));
        let visited = internal
            .iter()
            .skip(fresh)
            .any(|t| t.domain.same_as(&self.domain) && t.mta.same_as(&self.mta));
        returned || visited
    }

    /// Adds our elements to both traces. `deferred` is the time until which it is held here.
    pub(crate) fn add_trace(
        &self,
        now: Utc,
        deferred: Option<Utc>,
        trace: &mut Vec<TraceElement>,
        extensions: &mut Extensions,
    ) {
        let deferred_time = deferred.map(Time::from);
        // From an MTA of our domain: the domain's element is already present.
        if !trace.last().is_some_and(|t| t.domain.same_as(&self.domain)) {
            let mut own = TraceElement::relayed(self.domain.clone(), now);
            own.additional.deferred_time.clone_from(&deferred_time);
            trace.push(own);
        }
        let mut own = InternalTraceElement::relayed(self.domain.clone(), self.mta.clone(), now);
        own.additional.deferred_time = deferred_time;
        if add_internal_trace(extensions, own.clone()).is_err() {
            // Malformed: we start a new one, so that loops within our domain are still detected.
            extensions.remove(&ExtensionType::Standard(number::INTERNAL_TRACE_INFORMATION));
            let _ = add_internal_trace(extensions, own);
        }
    }

    /// Notes an action in our elements, which are the last: a redirection or an expansion of the
    /// recipients that this copy is for (X.411 12.3.1).
    pub(crate) fn note_action(
        &self,
        action: OtherActions,
        trace: &mut [TraceElement],
        extensions: &mut Extensions,
    ) {
        let domain = trace.last_mut().filter(|t| t.domain.same_as(&self.domain));
        if let Some(own) = domain {
            own.additional.other_actions = own.additional.other_actions | action;
        }
        let _ = update_internal_trace(extensions, |trace| {
            let own = |t: &&mut InternalTraceElement| {
                t.domain.same_as(&self.domain) && t.mta.same_as(&self.mta)
            };
            if let Some(own) = trace.last_mut().filter(own) {
                own.additional.other_actions = own.additional.other_actions | action;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{
        BAKER, at, content, engine, engine_of, failures, message, received, report, submission,
        submit,
    };
    use p1::apdu::MtsApduHead;

    #[test]
    fn each_domain_and_each_mta_adds_one_element() {
        let mut alpha = engine();
        let done = submit(&mut alpha, &submission(&[BAKER]));
        let head = received(&alpha, &done.accepted.entries[0]);
        let (first, second) = (
            engine_of("beta", "mta1", &[], &[("gamma", 0)]),
            engine_of("beta", "mta2", &["Baker"], &[]),
        );
        let mut envelope = message(&head).clone();
        first.add_trace(at(10), None, &mut envelope.trace, &mut envelope.extensions);
        assert!(!second.loops(&envelope.trace, &envelope.extensions));
        second.add_trace(at(20), None, &mut envelope.trace, &mut envelope.extensions);
        let domains: Vec<_> = envelope
            .trace
            .iter()
            .map(|t| (t.domain.prmd.clone().unwrap().value, t.arrival_time.utc.unwrap()))
            .collect();
        assert_eq!(domains, [("alpha".to_owned(), at(0)), ("beta".to_owned(), at(10))]);
        let mtas: Vec<_> = internal(&envelope.extensions)
            .into_iter()
            .map(|t| (t.domain.prmd.unwrap().value, t.mta.0, t.arrival_time.utc.unwrap()))
            .collect();
        let expected = [("alpha", "mta1", 0), ("beta", "mta1", 10), ("beta", "mta2", 20)]
            .map(|(d, m, s)| (d.to_owned(), m.to_owned(), at(s)));
        assert_eq!(mtas, expected);
    }

    /// Alpha routes beta's users to beta, and beta sends them back.
    #[test]
    fn a_message_that_comes_back_is_reported_as_a_loop() {
        let (mut alpha, mut beta) = (engine(), engine_of("other", "mta9", &[], &[("beta", 7)]));
        let done = submit(&mut alpha, &submission(&[BAKER]));
        let head = received(&alpha, &done.accepted.entries[0]);
        let there = beta.accept(at(1), head, &content(1000), &[]);
        let back = received(&beta, &there.accepted.entries[0]);
        let again = alpha.accept(at(2), back, &content(1000), &[]);
        assert_eq!(again.accepted.body, None);
        let [entry] = &again.accepted.entries[..] else { panic!("{again:?}") };
        // transfer-failure, loop-detected.
        assert_eq!(failures(report(entry)), [(1, Some((0, Some(3))))]);
    }

    #[test]
    fn an_mta_of_our_domain_is_no_loop_but_ourselves_are() {
        let mut alpha = engine();
        let done = submit(&mut alpha, &submission(&[BAKER]));
        let head = received(&alpha, &done.accepted.entries[0]);
        let envelope = message(&head);
        assert!(alpha.loops(&envelope.trace, &envelope.extensions));
        let second = engine_of("alpha", "mta2", &[], &[]);
        assert!(!second.loops(&envelope.trace, &envelope.extensions));
        // Without the internal trace, the loop is detected by leaving the domain and returning.
        let mut trace = envelope.trace.clone();
        trace.push(TraceElement::relayed(engine_of("b", "m", &[], &[]).domain, at(1)));
        assert!(second.loops(&trace, &Extensions::default()));
        assert!(!second.loops(&trace[1..], &Extensions::default()));
    }

    #[test]
    fn a_redirection_since_makes_another_visit_legitimate() {
        let mut alpha = engine();
        let done = submit(&mut alpha, &submission(&[BAKER]));
        let head = received(&alpha, &done.accepted.entries[0]);
        let MtsApduHead::Message(mut envelope) = head else { panic!() };
        let other = engine_of("beta", "mta9", &[], &[]);
        let mut element = TraceElement::relayed(other.domain.clone(), at(1));
        element.additional.other_actions = OtherActions::REDIRECTED;
        envelope.trace.push(element);
        let mut own = InternalTraceElement::relayed(other.domain, other.mta, at(1));
        own.additional.other_actions = OtherActions::REDIRECTED;
        add_internal_trace(&mut envelope.extensions, own).unwrap();
        assert!(!alpha.loops(&envelope.trace, &envelope.extensions));
    }

    #[test]
    fn a_malformed_internal_trace_is_replaced() {
        let alpha = engine();
        let (mut trace, mut extensions) = (Vec::new(), Extensions::default());
        alpha.add_trace(at(0), None, &mut trace, &mut extensions);
        extensions.0[0].value = bytes::Bytes::from_static(&[0x30, 0x02, 0x30]);
        assert!(internal(&extensions).is_empty());
        alpha.add_trace(at(1), None, &mut trace, &mut extensions);
        assert_eq!((trace.len(), internal(&extensions).len()), (1, 1));
    }
}
