//! Asserts after each input that nothing was left out.

use crate::node::Node;

impl Node {
    /// Asserts that to look at everything would change nothing: that what was touched was marked.
    #[cfg(debug_assertions)]
    pub(crate) fn check_settled(&mut self, now: base::Now) {
        if self.outbound.agenda.unchecked || !self.cx.life.is_running() {
            return;
        }
        let progress = self.cx.progress();
        let filed = self.outbound.agenda.clone();
        let draining = self.operations.draining().clone();
        self.end_drained(now, &draining);
        self.outbound.channels.mark_all();
        let bound = self.cx.associations.connections().bound();
        self.outbound.note_touched(&mut self.cx, bound);
        self.outbound.agenda.wishes.news();
        self.dispatch(now);
        assert_eq!(progress, self.cx.progress(), "gave out more after everything was looked at");
        assert!(
            !self.outbound.has_more_to_dispatch(&self.cx),
            "something changed when everything was looked at"
        );
        assert_eq!(filed, self.outbound.agenda, "something was not filed");
    }

    /// Leaves `check_settled` out.
    #[cfg(debug_assertions)]
    #[doc(hidden)]
    pub fn leave_unchecked(&mut self) {
        self.outbound.agenda.unchecked = true;
    }
}
