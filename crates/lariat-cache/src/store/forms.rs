//! Bringing a kind into the form in which it is kept.

use std::sync::Arc;

use super::body::{Course, SAMPLES};
use super::object::CachedObject;
use super::writer::{CHUNK, Edit};
use super::{Content, State, Storage, Store};

/// How many bytes a dictionary is made from at most.
const MOST_SAMPLED: usize = 2 * 1024 * 1024;

impl Store {
    /// Makes a dictionary of a kind once it has grown enough, and packs what is there.
    ///
    /// No lock is held while the dictionary is made, and while objects are packed others write in between.
    pub(crate) fn learn(&self) {
        let Some(course) = self.course() else {
            return;
        };
        // One at a time: another would come to the same.
        let Some(_alone) = self.learning.try_lock() else {
            return;
        };
        let lesson = course.learn(&self.samples(course));
        let is_packed = self.writer.lock().codec.adopt(course, lesson);
        if is_packed {
            self.repack();
        }
    }

    /// Returns what is to be learned now, if anything is.
    fn course(&self) -> Option<Course> {
        let writer = self.writer.lock();
        let course = writer.codec.course()?;
        let state = self.state.read();
        let matching = self.matching(&state, course);
        let held = state.bytes / state.tree.len().max(1) * matching;
        writer.codec.wants_samples(held).then_some(course)
    }

    fn samples(&self, course: Course) -> Vec<Box<[u8]>> {
        let matching = self.matching(&self.state.read(), course);
        let step = matching.div_ceil(SAMPLES).max(1);
        let mut room = MOST_SAMPLED;
        let snapshot = self.tree();
        let objects = snapshot.iter();
        let matching = objects.filter(|object| self.is_settled(object, course));
        let samples = matching
            .step_by(step)
            .filter_map(|object| object.json())
            .take_while(|json| {
                room = room.saturating_sub(json.len());
                room > 0
            });
        samples.map(|json| json.into_owned().into()).collect()
    }

    /// Returns whether an object is kept as it is going to be read from now on, so that it can be learned from.
    fn is_settled(&self, object: &CachedObject, course: Course) -> bool {
        let content = if course.is_of_metadata() {
            Content::MetadataOnly
        } else {
            Content::Whole
        };
        object.has_content() == self.wants_content(content, object)
    }

    /// Counts the objects that can be learned from; with a filter those, too, that are about to get or lose their
    /// content.
    fn matching(&self, state: &State, course: Course) -> usize {
        if course.is_of_metadata() {
            state.tree.len() - state.whole
        } else if self.filter().is_some() {
            state.tree.len()
        } else {
            state.whole
        }
    }

    /// Brings every object into the form that is chosen by now.
    fn repack(&self) {
        for keys in self.keys().chunks(CHUNK) {
            let mut writer = self.writer.lock();
            // What is counted here is in the tree.
            self.flush(&mut writer);
            let retains = writer.codec.retains();
            let (mut before, mut after) = (0, 0);
            for object in keys.iter().filter_map(|key| self.table.get(key.as_str())) {
                object.retain(retains);
                if object.has_content() && !writer.codec.keeps_content() {
                    if let Some(object) = object.without_content(&writer.codec) {
                        self.put(&mut writer, Edit::Replace(Arc::new(object)));
                    }
                } else {
                    before += object.bytes();
                    object.repack(&writer.codec);
                    after += object.bytes();
                }
            }
            self.state.write().resize(before, after);
            self.flush(&mut writer);
            // Who waits for it comes first.
            parking_lot::MutexGuard::unlock_fair(writer);
        }
    }

    /// Keeps the kind in another form from now on.
    pub(crate) fn set_storage(&self, storage: Storage) {
        let mut writer = self.writer.lock();
        if std::mem::replace(&mut *self.storage.lock(), storage) == storage {
            return;
        }
        writer.codec.set_storage(storage);
        drop(writer);
        self.learn();
        self.repack();
    }
}
