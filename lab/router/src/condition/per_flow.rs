//! State for each flow of a table that can change.

use crate::classify::FoundFlow;

/// A value for each flow that had a packet. The value of a removed flow remains until another flow
/// uses its slot, so there are never more values than there were flows at one time.
#[derive(Debug)]
pub(super) struct PerFlow<S> {
    slots: Vec<Option<(u64, S)>>,
}

impl<S> Default for PerFlow<S> {
    fn default() -> PerFlow<S> {
        PerFlow { slots: Vec::new() }
    }
}

impl<S> PerFlow<S> {
    /// The value of this flow, created by `new` at its first packet. Never `None`.
    #[inline]
    pub(super) fn get_or_insert_with(
        &mut self,
        found: &FoundFlow<'_>,
        new: impl FnOnce() -> S,
    ) -> Option<&mut S> {
        if self.slots.len() <= found.slot {
            self.slots.resize_with(found.slot + 1, || None);
        }
        let slot = self.slots.get_mut(found.slot)?;
        if slot.as_ref().is_none_or(|(number, _)| *number != found.number) {
            *slot = Some((found.number, new()));
        }
        slot.as_mut().map(|(_, value)| value)
    }
}
