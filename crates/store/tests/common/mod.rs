//! What the tests of the store share: the engines that are tested, and what `ops` has.
#![allow(dead_code)]

use std::sync::Arc;
use store::faulty::FaultyDisk;
use store::{Disk, LogStore, ModelState, ModelStore, Options, QueueStore, RedbStore, StoreError};

mod ops;

pub(crate) use ops::*;

/// An implementation of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    Model,
    Redb,
    Log,
}

pub(crate) const ENGINES: [Engine; 3] = [Engine::Model, Engine::Redb, Engine::Log];

/// A place where a store is opened again and again.
pub(crate) struct Site {
    engine: Engine,
    pub(crate) disk: FaultyDisk,
    options: Options,
    last: Option<Arc<ModelStore>>,
}

impl Engine {
    /// Whether a store is there again after it was closed.
    /// Whether a batch that removes what is not there is refused: another node may have removed it.
    pub(crate) fn removes_what_is_there(self) -> bool {
        false
    }

    pub(crate) fn reopens(self) -> bool {
        self != Engine::Model
    }

    /// A store that is not the model, on a disk that nothing else uses meanwhile.
    pub(crate) fn on(
        self,
        disk: &FaultyDisk,
        options: Options,
    ) -> Result<Arc<dyn QueueStore>, StoreError> {
        let disk = Arc::new(disk.clone());
        Ok(match self {
            Engine::Redb => Arc::new(RedbStore::with_disk(disk, options)?),
            Engine::Log => Arc::new(LogStore::with_disk(disk, options)?),
            Engine::Model => unreachable!("the model has no disk"),
        })
    }
}

impl Site {
    pub(crate) fn new(engine: Engine) -> Site {
        Site::with_options(engine, Options::default())
    }

    pub(crate) fn with_options(engine: Engine, options: Options) -> Site {
        Site { engine, disk: FaultyDisk::new(), options, last: None }
    }

    /// Long contents that are stored apart.
    pub(crate) fn body_files(&self) -> usize {
        if self.engine == Engine::Model { 0 } else { body_files(&self.disk) }
    }

    /// Opens it; an earlier store of this site is used no longer.
    pub(crate) fn open(&mut self) -> Arc<dyn QueueStore> {
        match self.engine {
            engine @ (Engine::Redb | Engine::Log) => engine.on(&self.disk, self.options).unwrap(),
            Engine::Model => {
                let state = self.last.take().map_or_else(ModelState::default, |last| last.state());
                let store = Arc::new(ModelStore::holding(state));
                self.last = Some(Arc::clone(&store));
                store
            }
        }
    }
}

/// Body files on the disk.
pub(crate) fn body_files(disk: &dyn Disk) -> usize {
    disk.list(std::path::Path::new("bodies")).map_or(usize::MAX, |files| files.len())
}
