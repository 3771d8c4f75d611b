//! Bringing a kind into the form in which it is kept.

use std::sync::Arc;

use super::body::SAMPLES;
use super::writer::{Edit, Writer};
use super::{Storage, Store};

/// How many bytes a dictionary is made from at most.
const MOST_SAMPLED: usize = 2 * 1024 * 1024;

impl Store {
    /// Makes a dictionary of a kind once it has grown enough, and packs what is there.
    pub(super) fn learn(&self, writer: &mut Writer) {
        if !writer.codec.is_learning() || !writer.codec.wants_samples(self.bytes()) {
            return;
        }
        let snapshot = self.tree();
        let step = snapshot.len().div_ceil(SAMPLES).max(1);
        let mut room = MOST_SAMPLED;
        let samples = snapshot
            .iter()
            .step_by(step)
            .filter_map(|object| object.json());
        let samples: Vec<Box<[u8]>> = samples
            .take_while(|json| {
                room = room.saturating_sub(json.len());
                room > 0
            })
            .map(|json| json.into_owned().into())
            .collect();
        if writer.codec.learn(&samples) {
            drop(snapshot);
            self.repack(writer);
        }
    }

    /// Brings every object into the form that is chosen by now.
    fn repack(&self, writer: &mut Writer) {
        let retains = writer.codec.retains();
        let snapshot = self.tree();
        for object in snapshot.iter() {
            object.retain(retains);
            if let Some(repacked) = object.repacked(&writer.codec) {
                self.put(writer, Edit::Repack(Arc::new(repacked)));
            }
        }
        self.flush(writer);
    }

    /// Keeps the kind in another form from now on.
    pub(crate) fn set_storage(&self, storage: Storage) {
        let mut writer = self.writer.lock();
        if self.storage() != storage {
            writer.codec.set_storage(storage);
            *self.storage.lock() = storage;
            self.learn(&mut writer);
            self.repack(&mut writer);
        }
    }
}
