//! Packing: changing stored objects to the form that is chosen for their kind.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use super::body::{Age, Body, Dictionary, SAMPLES, Storage, Training};
use super::change::Content;
use super::object::CachedObject;
use super::objects::{CHUNK, Indexing, ListState};
use super::writer::Kept;

/// How many bytes of samples a dictionary is trained from at most.
const MOST_SAMPLED: usize = 2 * 1024 * 1024;

/// How many objects are packed in a row, without a lock.
const ROW: usize = 32;

/// The form that is chosen for a store, and the training of its dictionary.
#[derive(Debug, Default)]
pub(super) struct Packing {
    storage: Mutex<Storage>,
    /// Locked during the training of a dictionary.
    training_lock: Mutex<()>,
}

impl Packing {
    pub(super) fn storage(&self) -> Storage {
        *self.storage.lock()
    }

    /// Stores the kind in another form from now on, and changes existing objects to it.
    pub(super) fn set_storage(&self, store: &Kept, storage: Storage) {
        let mut writing = store.writing();
        if std::mem::replace(&mut *self.storage.lock(), storage) == storage {
            return;
        }
        writing.writer.codec.set_storage(storage);
        drop(writing);
        self.train(store);
        repack(store);
    }

    /// Trains a dictionary once the kind is large enough, and packs existing objects.
    pub(super) fn train(&self, store: &Kept) {
        let Some(training) = training(store) else {
            return;
        };
        // A second training at the same time would have the same result.
        let Some(_alone) = self.training_lock.try_lock() else {
            return;
        };
        let result = training.train(&samples(store, training));
        let is_packed = store.writing().writer.codec.adopt(training, result);
        if is_packed {
            repack(store);
        }
    }
}

/// Returns the training that is due now, if any.
fn training(store: &Kept) -> Option<Training> {
    let writing = store.writing();
    let codec = &writing.writer.codec;
    let training = codec.training()?;
    let state = store.objects.state();
    let matching = matching(store, &state, training);
    let held = state.bytes / state.tree.len().max(1) * matching;
    codec.wants_samples(held).then_some(training)
}

fn samples(store: &Kept, training: Training) -> Vec<Box<[u8]>> {
    let matching = matching(store, &store.objects.state(), training);
    let step = matching.div_ceil(SAMPLES).max(1);
    let mut room = MOST_SAMPLED;
    let snapshot = store.objects.snapshot();
    let objects = snapshot.iter();
    let matching = objects.filter(|object| is_settled(store, object, training));
    let samples = matching
        .step_by(step)
        .filter_map(|object| object.json())
        .take_while(|json| {
            room = room.saturating_sub(json.len());
            room > 0
        });
    samples.map(|json| json.into_owned().into()).collect()
}

/// Returns whether an object has, or lacks, content as it will from now on.
///
/// Only such objects are samples.
fn is_settled(store: &Kept, object: &CachedObject, training: Training) -> bool {
    let content = if training.is_of_metadata() {
        Content::MetadataOnly
    } else {
        Content::Whole
    };
    object.has_content() == store.wants_content(content, object)
}

/// Counts the possible samples.
///
/// With a filter, the count includes objects that are about to gain or lose content.
fn matching(store: &Kept, state: &ListState, training: Training) -> usize {
    if training.is_of_metadata() {
        state.tree.len() - state.whole
    } else if store.filter.is_some() {
        state.tree.len()
    } else {
        state.whole
    }
}

/// Changes every object to the form that is chosen now.
fn repack(store: &Kept) {
    for keys in store.objects.keys().chunks(CHUNK) {
        let mut writing = store.writing();
        // Sizes are counted for objects in the tree, so all objects must be in it.
        writing.flush();
        let retains = writing.writer.codec.retains();
        let (mut before, mut after) = (0, 0);
        for object in keys
            .iter()
            .filter_map(|key| store.objects.get(key.as_str()))
        {
            object.retain(retains);
            let codec = &writing.writer.codec;
            if object.has_content() && !codec.keeps_content() {
                if let Some(object) = object.without_content(codec) {
                    writing.put(Arc::new(object), Indexing::Keep);
                }
            } else {
                before += object.bytes();
                object.repack(codec);
                after += object.bytes();
            }
        }
        store.objects.state_mut().resize(before, after);
        writing.flush();
        // Hands the lock to a waiting writer, so that watch events do not wait for the whole kind.
        MutexGuard::unlock_fair(writing.writer);
    }
}

/// Packs the states that wait, outside the writers' lock.
pub(super) fn pack_waiting(store: &Kept, age: Age) {
    let mut limit = age.limit();
    while let Some((row, dictionary)) = next_row(store, limit, age.left()) {
        let packed = row.into_iter().filter_map(|object| {
            let body = object.packed_with(&dictionary)?;
            Some((object, body))
        });
        take_over(store, packed.collect(), &dictionary);
        limit = age.left();
    }
}

/// Returns the next states to pack, and their dictionary.
///
/// `None` if few enough wait.
fn next_row(
    store: &Kept,
    limit: usize,
    left: usize,
) -> Option<(Vec<Arc<CachedObject>>, Arc<Dictionary>)> {
    let mut writing = store.writing();
    let codec = &mut writing.writer.codec;
    if codec.waiting_bytes() <= limit {
        return None;
    }
    loop {
        // A state that was replaced meanwhile is skipped.
        let waiting = codec.take_waiting(left).filter_map(|waiting| {
            let known = store.objects.get(waiting.key.as_str())?;
            (*known.version() == waiting.version).then_some(known)
        });
        let row: Vec<_> = waiting.take(ROW).collect();
        let longest = row.iter().map(|object| object.json_bytes()).max()?;
        // Dropped if the form of the kind was changed meanwhile.
        if let Some(dictionary) = codec.dictionary(longest) {
            return Some((row, Arc::clone(dictionary)));
        }
    }
}

/// Stores packed content, unless object or dictionary have changed meanwhile.
fn take_over(store: &Kept, packed: Vec<(Arc<CachedObject>, Body)>, dictionary: &Arc<Dictionary>) {
    let mut writing = store.writing();
    // Sizes are counted for objects in the tree, so all objects must be in it.
    writing.flush();
    let (mut before, mut after) = (0, 0);
    for (object, body) in packed {
        let known = store.objects.get(object.key().as_str());
        let is_here = known.is_some_and(|known| Arc::ptr_eq(&known, &object));
        let now = writing.writer.codec.dictionary(object.json_bytes());
        if is_here && now.is_some_and(|now| Arc::ptr_eq(now, dictionary)) {
            before += object.bytes();
            object.set_body(body);
            after += object.bytes();
        }
    }
    store.objects.state_mut().resize(before, after);
}
