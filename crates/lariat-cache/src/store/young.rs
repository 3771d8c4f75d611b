//! Objects that have changed lately, whose JSON is still plain.
//!
//! A handler is about to read what has just changed, and what changes often would be packed for nothing. So objects of a
//! watch are stored as they came, and packed later, many in a row: the first use of zstd after other work costs ten times
//! as much as those behind it, for its tables have left the processor's caches.

use std::collections::VecDeque;
use std::sync::Arc;

use lariat_core::{ObjectKey, ResourceVersion};

use super::Store;
use super::body::{Dictionary, SHORTEST};
use super::object::CachedObject;

/// How many bytes of JSON wait at most, and how many are left when that is exceeded.
const MOST: usize = 512 * 1024;
const LEFT: usize = 256 * 1024;

/// How many objects are packed at a time, without a lock.
const ROW: usize = 32;

/// The states that are to be packed, oldest first.
#[derive(Debug, Default)]
pub(super) struct Young {
    states: VecDeque<Waiting>,
    /// The sum of the lengths of their JSON, replaced ones included.
    bytes: usize,
}

/// A state that may have been replaced since.
#[derive(Debug)]
struct Waiting {
    key: ObjectKey,
    version: ResourceVersion,
    bytes: usize,
}

impl Young {
    /// Adds a state whose JSON has so many bytes.
    pub(super) fn add(&mut self, object: &CachedObject, bytes: usize) {
        self.bytes += bytes;
        self.states.push_back(Waiting {
            key: object.key().clone(),
            version: object.version().clone(),
            bytes,
        });
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.states.len()
    }

    /// Returns how many there are at most, after a batch of a watch.
    pub(super) fn most(&self) -> usize {
        // None is shorter than what is worth packing.
        MOST / SHORTEST
    }

    /// Takes the oldest states, as long as more bytes wait than a limit.
    fn take(&mut self, limit: usize) -> impl Iterator<Item = Waiting> {
        std::iter::from_fn(move || {
            if self.bytes <= limit {
                return None;
            }
            let oldest = self.states.pop_front()?;
            self.bytes -= oldest.bytes;
            Some(oldest)
        })
    }
}

/// Which of the objects that wait are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Age {
    /// The oldest, if too many wait.
    Old,
    All,
}

impl Store {
    /// Returns whether objects wait to be packed.
    pub(crate) fn has_young(&self) -> bool {
        self.writer.lock().young.bytes() > 0
    }

    /// Packs objects that have changed lately. No lock is held while it packs.
    pub(crate) fn pack_young(&self, age: Age) {
        let mut limit = match age {
            Age::Old => MOST,
            Age::All => 0,
        };
        while let Some((row, dictionary)) = self.next_row(limit) {
            let packed = row.into_iter().filter_map(|object| {
                let body = object.packed_with(&dictionary)?;
                Some((object, body))
            });
            let packed: Vec<_> = packed.collect();
            let mut writer = self.writer.lock();
            // What it counts is in the tree.
            self.flush(&mut writer);
            let (mut before, mut after) = (0, 0);
            for (object, body) in packed {
                let known = self.table.get(object.key().as_str());
                let is_here = known.is_some_and(|known| Arc::ptr_eq(&known, &object));
                let now = writer.codec.dictionary(object.json_bytes());
                if is_here && now.is_some_and(|now| Arc::ptr_eq(now, &dictionary)) {
                    before += object.bytes();
                    object.set_body(body);
                    after += object.bytes();
                }
            }
            self.state.write().resize(before, after);
            limit = limit.min(LEFT);
        }
    }

    /// Takes the next objects that are still here and plain, and what packs them; none if few enough wait.
    fn next_row(&self, limit: usize) -> Option<(Vec<Arc<CachedObject>>, Arc<Dictionary>)> {
        let mut writer = self.writer.lock();
        if writer.young.bytes() <= limit {
            return None;
        }
        loop {
            let waiting = writer.young.take(limit.min(LEFT)).filter_map(|waiting| {
                let known = self.table.get(waiting.key.as_str())?;
                (*known.version() == waiting.version).then_some(known)
            });
            let row: Vec<_> = waiting.take(ROW).collect();
            let longest = row.iter().map(|object| object.json_bytes()).max()?;
            // All of the kind may have been brought into another form since.
            if let Some(dictionary) = writer.codec.dictionary(longest) {
                return Some((row, Arc::clone(dictionary)));
            }
        }
    }
}
