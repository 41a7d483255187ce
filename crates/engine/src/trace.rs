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
};
use p1::wire::bound;

/// The internal trace, oldest first; one that cannot be read is as good as none.
pub(crate) fn internal(extensions: &Extensions) -> Vec<InternalTraceElement> {
    internal_trace(extensions).unwrap_or_default()
}

/// Whether what happened there makes another visit legitimate: the recipients are others now.
fn readdressed(actions: OtherActions) -> bool {
    actions.contains(OtherActions::REDIRECTED) || actions.contains(OtherActions::DL_OPERATION)
}

impl Engine {
    /// Whether this was here before and comes back unchanged. To be asked before our own elements
    /// are added.
    pub(crate) fn loops(&self, trace: &[TraceElement], extensions: &Extensions) -> bool {
        let internal = internal(extensions);
        // What has come this far is not going anywhere.
        if trace.len() >= bound::TRANSFERS || internal.len() >= bound::TRANSFERS {
            return true;
        }
        // Since the last redirection or expansion only: what follows one is a new journey.
        let since = |positions: Option<usize>| positions.map_or(0, |at| at + 1);
        let fresh = since(trace.iter().rposition(|t| readdressed(t.additional.other_actions)));
        let mut domains = trace.iter().skip(fresh).map(|t| t.domain.same_as(&self.domain));
        // Ours, then another's: it left the domain and has returned.
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
        // From an MTA of our domain: the domain's element is there.
        if !trace.last().is_some_and(|t| t.domain.same_as(&self.domain)) {
            let mut own = TraceElement::relayed(self.domain.clone(), now);
            own.additional.deferred_time.clone_from(&deferred_time);
            trace.push(own);
        }
        let mut own = InternalTraceElement::relayed(self.domain.clone(), self.mta.clone(), now);
        own.additional.deferred_time = deferred_time;
        if add_internal_trace(extensions, own.clone()).is_err() {
            // Malformed: ours begins a new one, lest MTAs of our domain go round in circles.
            extensions.remove(&ExtensionType::Standard(number::INTERNAL_TRACE_INFORMATION));
            let _ = add_internal_trace(extensions, own);
        }
    }
}
