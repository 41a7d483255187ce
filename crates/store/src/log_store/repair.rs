//! Gives up what is damaged, so that the rest is whole.

use super::LogStore;
use super::frame::{Change, FrameWriter, SegmentId};
use super::index::Key;
use super::segment::Room;
use crate::error::StoreError;
use crate::queue::Damage;

/// Octets of a change that deletes, at most.
const DELETE: u64 = 128;

impl LogStore {
    pub(super) fn repair_all(&self) -> Result<(), StoreError> {
        let damage = self.damaged().clone();
        self.delete_damaged(&damage)?;
        let places: Vec<SegmentId> = {
            let index = self.index();
            let damaged = |(_, of): &(&SegmentId, &super::index::SegmentUse)| of.is_damaged;
            index.segments().iter().filter(damaged).map(|(id, _)| *id).collect()
        };
        for id in places {
            self.write_anew(id)?;
        }
        self.accept_missing()?;
        self.write_runs_anew()?;
        *self.damaged() = Damage::default();
        Ok(())
    }

    /// The runs of keys of which blocks are damaged, without those blocks.
    fn write_runs_anew(&self) -> Result<(), StoreError> {
        let io = |e| StoreError::io("writing remembered keys anew", e);
        let old = self.index().keys.old();
        for run in old.runs() {
            if run.verify(&*self.disk).map_err(io)? > 0 {
                let new = run.rewritten(&*self.disk).map_err(io)?;
                self.index_mut().keys.replace_run(new);
            }
        }
        Ok(())
    }

    fn delete_damaged(&self, damage: &Damage) -> Result<(), StoreError> {
        let count = damage.entries.len() + damage.bodies.len();
        if count == 0 {
            return Ok(());
        }
        let mut writer = self.writer();
        self.check()?;
        let size = DELETE.saturating_mul(count as u64 + 1);
        let done = self.append(&mut writer, size, Room::Freeing, |encoder| {
            let (mut frame, mut changes) = (FrameWriter::default(), Vec::new());
            for (precedence, id) in damage.entries.iter().copied() {
                let old = encoder.versions(Key::Entry(precedence, id));
                changes.push(Change::DeleteEntry { precedence, id, old });
            }
            for id in damage.bodies.iter().copied() {
                let old = encoder.versions(Key::Body(id));
                changes.push(Change::DeleteBody { id, old });
            }
            changes.iter().for_each(|change| frame.change(change));
            encoder.push(frame, changes);
        });
        done.into_result()
    }

    /// Gives up the segments that are missing, and those that were written anew.
    fn accept_missing(&self) -> Result<(), StoreError> {
        let mut writer = self.writer();
        let missing = std::mem::take(&mut self.index_mut().missing);
        self.index_mut().keys.accept_missing();
        writer.has_new_run = true;
        if !missing.is_empty() {
            // A new segment lists those that exist, and is the newest.
            writer.seal();
        }
        writer.to_retire.extend(missing);
        loop {
            self.append(&mut writer, 0, Room::Freeing, |_| ()).into_result()?;
            self.retire_useless(&mut writer);
            if writer.to_retire.is_empty() {
                break;
            }
        }
        self.segments.record_newest(writer.last);
        Ok(())
    }

    /// Copies what is whole of a segment, and gives the segment up.
    fn write_anew(&self, id: SegmentId) -> Result<(), StoreError> {
        let mut writer = self.writer();
        self.check()?;
        if writer.active.as_ref().is_some_and(|active| active.id == id) {
            writer.seal();
        }
        // Its keys go into a run first: only they are in frames alone.
        while self.keys_of_into_run(&mut writer, id)? {}
        let io = |e| StoreError::io("reading a segment of the log", e);
        if let Some(segment) = self.segments.get(id).map_err(io)? {
            self.begin_copy(&mut writer, segment);
            while self.compact(&mut writer)? && writer.compaction.is_some() {}
        }
        self.index_mut().set_damaged(id, false);
        Ok(())
    }
}
