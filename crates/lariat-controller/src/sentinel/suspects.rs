//! The keys that this process writes, as many as are worth remembering.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use lariat_core::{Gvk, ObjectKey};
use tokio::time::Instant;

use super::options::Sentinel;
use super::suspect::{Ask, HotLoop, Suspect, Write, since_progress};
use super::trail::ChainRun;

/// How many keys are remembered.
const MOST: usize = 1024;

/// How long a key that is not written is worth remembering when there are too many.
const RECENT: Duration = Duration::from_secs(60);

/// What is known of a run before it begins.
#[derive(Debug, Clone)]
pub(crate) struct Judgement {
    /// How many runs in a row, each caused by the write of the one before, led to it, counted from the last that made
    /// progress.
    pub(crate) chain: u32,
    /// How long it has to wait.
    pub(crate) wait: Option<Duration>,
    /// The run itself, if it is one of a chain.
    pub(crate) step: Option<Arc<ChainRun>>,
}

impl Judgement {
    /// Makes the judgement of a run that need not wait, from its chain and the last run of that.
    pub(super) fn of(chain: u32, last: Option<&Arc<ChainRun>>) -> Self {
        Self {
            chain,
            wait: None,
            step: (chain > 0).then(|| ChainRun::after(last)),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Suspects {
    keys: HashMap<ObjectKey, Suspect>,
    /// The objects of other kinds that runs write and that bring their keys back.
    related: HashMap<(Gvk, ObjectKey), Suspect>,
}

impl Suspects {
    /// Takes a write in; returns what there is to warn of.
    pub(super) fn wrote(
        &mut self,
        write: &Write<'_>,
        options: &Sentinel,
        now: Instant,
    ) -> Option<HotLoop> {
        let key = write.after.key();
        if !self.keys.contains_key(key) {
            make_room(&mut self.keys, now);
        }
        let suspect = self.keys.entry(key.clone());
        let suspect = suspect.or_insert_with(|| Suspect::new(now));
        if suspect.wrote(write, options, now) {
            suspect.hot_loop(key)
        } else {
            None
        }
    }

    /// Takes in a write of a run of a key to a related object; returns what there is to warn of.
    pub(super) fn wrote_related(
        &mut self,
        key: &ObjectKey,
        of: &Gvk,
        write: &Write<'_>,
        options: &Sentinel,
        now: Instant,
    ) -> Option<HotLoop> {
        let object = (of.clone(), write.after.key().clone());
        if !self.related.contains_key(&object) {
            make_room(&mut self.related, now);
        }
        let related = self.related.entry(object);
        let related = related.or_insert_with(|| Suspect::new(now));
        // Each relation between two kinds reports it.
        if related.has_written(write.version) {
            return None;
        }
        let warns = related.wrote(write, options, now);
        if !related.is_contested_at(now) {
            return None;
        }
        if !self.keys.contains_key(key) {
            make_room(&mut self.keys, now);
        }
        let suspect = self.keys.entry(key.clone());
        let suspect = suspect.or_insert_with(|| Suspect::new(now));
        let what = format!("{} {}", of.kind(), write.after.key());
        suspect.contested(related, &what, now);
        warns.then(|| suspect.hot_loop(key)).flatten()
    }

    /// Judges a run, and returns what there is to warn of.
    pub(super) fn judge(
        &mut self,
        key: &ObjectKey,
        ask: &Ask<'_>,
        options: &Sentinel,
        now: Instant,
    ) -> (Judgement, Option<HotLoop>) {
        let chain = since_progress(ask.causes.chain(), ask.step);
        if chain >= options.runs && !self.keys.contains_key(key) {
            // Its runs write other objects, whose changes bring it back.
            make_room(&mut self.keys, now);
            self.keys.insert(key.clone(), Suspect::new(now));
        }
        let Some(suspect) = self.keys.get_mut(key) else {
            return (Judgement::of(chain, ask.step), None);
        };
        let was_found = suspect.is_found();
        let (chain, last) = suspect.chain(ask);
        let judgement = Judgement::of(chain, last);
        let wait = suspect.pause(ask, options, now);
        let judgement = Judgement { wait, ..judgement };
        // Of one that is written itself, the write warns.
        let warning = (!was_found).then(|| suspect.hot_loop(key)).flatten();
        (
            judgement,
            warning.filter(|hot_loop| hot_loop.brought_by.is_some()),
        )
    }

    /// Returns how many keys are remembered, and how many at most.
    pub(super) fn remembered(&self) -> (usize, usize) {
        (self.keys.len() + self.related.len(), 2 * MOST)
    }

    /// Returns the keys that are in hot loops, and forgets those that have been quiet.
    pub(super) fn hot_loops(&mut self, now: Instant) -> Vec<HotLoop> {
        self.keys.retain(|_, suspect| !suspect.is_quiet(now));
        self.related.retain(|_, suspect| !suspect.is_quiet(now));
        let hot_loops = self
            .keys
            .iter()
            .filter_map(|(key, suspect)| suspect.hot_loop(key));
        let mut hot_loops: Vec<HotLoop> = hot_loops.collect();
        hot_loops.sort_by(|a, b| a.key.cmp(&b.key));
        hot_loops
    }
}

/// Forgets keys when there are too many: those found out last.
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
