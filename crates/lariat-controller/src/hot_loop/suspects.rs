//! The keys of a kind that this process writes, bounded in number.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use lariat_core::{Gvk, ObjectKey};
use tokio::time::Instant;

use super::options::HotLoopOptions;
use super::suspect::{Ask, HotLoop, Suspect, Write, since_progress};
use super::trail::ChainRun;

/// The maximum number of keys that are remembered.
const MOST: usize = 1024;

/// How long an unwritten key is kept if there are too many.
const RECENT: Duration = Duration::from_secs(60);

/// The evaluation of a run before it begins.
#[derive(Debug, Clone)]
pub(crate) struct Evaluation {
    /// The length of the chain that leads to the run, since its last progress.
    pub(crate) chain: u32,
    /// The delay of the run, if it must wait.
    pub(crate) wait: Option<Duration>,
    /// The run as a step of its chain, if it is part of one.
    pub(crate) step: Option<Arc<ChainRun>>,
}

impl Evaluation {
    /// Creates the evaluation of a run that may begin.
    pub(super) fn of(chain: u32, last: Option<&Arc<ChainRun>>) -> Self {
        Self {
            chain,
            wait: None,
            step: (chain > 0).then(|| ChainRun::after(last)),
        }
    }
}

/// The suspects of a kind.
#[derive(Debug, Default)]
pub(super) struct Suspects {
    /// Written objects of the kind, and keys of long chains.
    keys: HashMap<ObjectKey, Suspect>,
    /// Written objects of related kinds, whose changes enqueue keys.
    related: HashMap<(Gvk, ObjectKey), Suspect>,
}

impl Suspects {
    /// Records a write; returns a hot loop to warn about.
    pub(super) fn wrote(
        &mut self,
        write: &Write<'_>,
        options: &HotLoopOptions,
        now: Instant,
    ) -> Option<HotLoop> {
        let key = write.after.key();
        let suspect = entry(&mut self.keys, key, now);
        if suspect.wrote(write, options, now) {
            suspect.hot_loop(key)
        } else {
            None
        }
    }

    /// Records a write to a related object; returns a hot loop to warn about.
    pub(super) fn wrote_related(
        &mut self,
        key: &ObjectKey,
        of: &Gvk,
        write: &Write<'_>,
        options: &HotLoopOptions,
        now: Instant,
    ) -> Option<HotLoop> {
        let object = (of.clone(), write.after.key().clone());
        let related = entry(&mut self.related, &object, now);
        // Every relation between the two kinds reports the same write.
        if related.has_written(write.version) {
            return None;
        }
        let warns = related.wrote(write, options, now);
        // A chain of writes to related objects is detected before the key's next run, by its length.
        if !related.is_contested_at(now) {
            return None;
        }
        let suspect = entry(&mut self.keys, key, now);
        let what = format!("{} {}", of.kind(), write.after.key());
        suspect.contested(related, &what, now);
        warns.then(|| suspect.hot_loop(key)).flatten()
    }

    /// Judges a run; also returns a hot loop to warn about.
    pub(super) fn judge(
        &mut self,
        key: &ObjectKey,
        ask: &Ask<'_>,
        options: &HotLoopOptions,
        now: Instant,
    ) -> (Evaluation, Option<HotLoop>) {
        let chain = since_progress(ask.causes.chain(), ask.step);
        if chain >= options.runs && !self.keys.contains_key(key) {
            // The key is not written itself: its runs write other objects, whose changes enqueue it.
            make_room(&mut self.keys, now);
            self.keys.insert(key.clone(), Suspect::new(now));
        }
        let Some(suspect) = self.keys.get_mut(key) else {
            return (Evaluation::of(chain, ask.step), None);
        };
        let was_found = suspect.is_found();
        let (chain, last) = suspect.chain(ask);
        let evaluation = Evaluation::of(chain, last);
        let wait = suspect.pause(ask, options, now);
        let evaluation = Evaluation { wait, ..evaluation };
        // A loop by writes of the key's own object has been warned of at the write.
        let warning = (!was_found).then(|| suspect.hot_loop(key)).flatten();
        (
            evaluation,
            warning.filter(|hot_loop| hot_loop.triggered_by.is_some()),
        )
    }

    /// Returns how many keys are remembered, and their bound.
    pub(super) fn table_sizes(&self) -> (usize, usize) {
        (self.keys.len() + self.related.len(), 2 * MOST)
    }

    /// Returns the keys in hot loops, and forgets quiet ones.
    pub(super) fn hot_loops(&mut self, now: Instant) -> Vec<HotLoop> {
        self.keys.retain(|_, suspect| !suspect.is_quiet(now));
        self.related.retain(|_, suspect| !suspect.is_quiet(now));
        let mut hot_loops: Vec<HotLoop> = self
            .keys
            .iter()
            .filter_map(|(key, suspect)| suspect.hot_loop(key))
            .collect();
        hot_loops.sort_by(|a, b| a.key.cmp(&b.key));
        hot_loops
    }
}

/// Returns the state of a key, after making room if it is new.
fn entry<'a, K: Clone + Eq + Hash>(
    keys: &'a mut HashMap<K, Suspect>,
    key: &K,
    now: Instant,
) -> &'a mut Suspect {
    if !keys.contains_key(key) {
        make_room(keys, now);
    }
    let entry = keys.entry(key.clone());
    entry.or_insert_with(|| Suspect::new(now))
}

/// Makes room for a key: forgets keys not written for a minute, then those without a hot loop, then all.
fn make_room<K>(keys: &mut HashMap<K, Suspect>, now: Instant) {
    if keys.len() < MOST {
        return;
    }
    keys.retain(|_, suspect| now - suspect.touched < RECENT);
    if keys.len() >= MOST {
        keys.retain(|_, suspect| suspect.is_found());
    }
    if keys.len() >= MOST {
        keys.clear();
    }
}
