//! Reads everything, to find damage before it is in the way.

use super::LogStore;
use super::index::{BodyRow, Key};
use crate::error::StoreError;
use crate::queue::QueueStore;
use base::BodyId;

/// Entries or bodies whose rows are taken at once, and octets of a content read at once.
const PAGE: usize = 256;
const PART: usize = 1 << 20;

impl LogStore {
    /// Reads the records, the contents and the remembered keys, in this order.
    pub(super) fn verify_all(
        &self,
        goes_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<(), StoreError> {
        let mut after = None;
        loop {
            let rows: Vec<_> = self.index().entries_after(after).take(PAGE).collect();
            let Some((last, _)) = rows.last() else { break };
            after = Some(*last);
            let octets = rows.iter().map(|(_, row)| u64::from(row.at.length)).sum();
            for (place, row) in rows {
                damage_is_noted(self.record(place, row).map(drop))?;
            }
            if !goes_on(octets) {
                return Ok(());
            }
        }
        let mut after = None;
        loop {
            let ids: Vec<BodyId> = self.index().bodies_after(after).take(PAGE).collect();
            let Some(last) = ids.last() else { break };
            after = Some(*last);
            for id in ids {
                if !self.verify_body(id, goes_on)? {
                    return Ok(());
                }
            }
        }
        self.verify_keys(goes_on)
    }

    /// False if the reading is to end.
    fn verify_body(
        &self,
        id: BodyId,
        goes_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<bool, StoreError> {
        self.check()?;
        let length = match self.index().body(id) {
            None => return Ok(true),
            Some(BodyRow::Inline(at)) => {
                // Not from the cache of the latest commits, and not into it.
                let io = |e| StoreError::io("reading the log", e);
                let segment = self.segments.get(at.segment).map_err(io)?;
                let octets = match &segment {
                    Some(segment) => segment.data(Key::Body(id), at).map_err(io)?,
                    None => None,
                };
                if octets.is_none() && self.index().body(id) == Some(BodyRow::Inline(at)) {
                    self.body_damaged(id);
                }
                return Ok(goes_on(at.length.into()));
            }
            Some(BodyRow::File(file)) => file.length,
        };
        let mut offset = 0;
        while offset < length {
            let part = match self.body(id, offset, PART) {
                Err(StoreError::BodyDamaged { .. }) | Ok(None) => return Ok(true),
                part => part?.unwrap_or_default(),
            };
            offset += part.len().max(1) as u64;
            if !goes_on(part.len() as u64) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn verify_keys(&self, goes_on: &mut dyn FnMut(u64) -> bool) -> Result<(), StoreError> {
        let (old, mut damaged) = {
            let index = self.index();
            (index.keys.old(), index.keys.missing_blocks())
        };
        for run in old.runs() {
            self.check()?;
            match run.verify(&*self.disk) {
                // Dropped meanwhile: all of it has expired.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                found => {
                    let found = found.map_err(|e| StoreError::io("reading remembered keys", e))?;
                    damaged += found as u64;
                }
            }
            if !goes_on(run.octets) {
                return Ok(());
            }
        }
        if damaged > 0 {
            tracing::error!(blocks = damaged, "remembered keys are damaged");
            self.damaged().keys = damaged;
        }
        Ok(())
    }
}

/// A damaged record is noted where it was met.
fn damage_is_noted(result: Result<(), StoreError>) -> Result<(), StoreError> {
    match result {
        Err(StoreError::EntryDamaged { .. }) => Ok(()),
        other => other,
    }
}
