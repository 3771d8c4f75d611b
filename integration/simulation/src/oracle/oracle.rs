//! The states of objects that a process may still show.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lariat_cluster::{Commit, StoredObject};
use lariat_core::{Gvk, ObjectKey};
use lariat_sim::internals::{Event, Moment, Written};

use super::horizon::Horizon;
use super::kind::{Kind, kind_of, name_of};

/// All states of the server.
///
/// The history of versions begins again with each restored backup: an epoch. A state that no cache of a living process
/// can show any more is forgotten; see [`Horizon`].
#[derive(Default)]
pub(crate) struct Oracle {
    epoch: u32,
    kinds: BTreeMap<Kind, Objects>,
    /// The event that began the present epoch.
    pub(crate) reset_at: u64,
    restored: Option<Duration>,
    horizon: Horizon,
    /// The time at which states were forgotten last.
    swept: Duration,
}

/// The objects of a kind.
#[derive(Default)]
struct Objects {
    states: BTreeMap<ObjectKey, Vec<Past>>,
    /// The times and versions of commits in their order.
    ///
    /// The first is the newest one that is older than [`RECENT`].
    recent: VecDeque<(Duration, u64)>,
}

/// For how long all commits of a kind are kept.
///
/// [`Oracle::newest`] asks for those of the last moments.
const RECENT: Duration = Duration::from_secs(60);

/// The interval at which states are forgotten.
pub(crate) const SWEEP: Duration = Duration::from_secs(5 * 60);

/// The time after a restore in which a process may still take older versions for newer.
///
/// It notices when a request fails or a watch ends, and loads again then; that is also when the server is away.
pub(crate) const NOTICED: Duration = Duration::from_secs(120);

/// One state of an object, or its absence.
#[derive(Debug)]
pub(crate) struct Past {
    /// Twice the number of the event that brought it; see [`Moment::number`].
    ///
    /// Later states of an object have higher ones.
    pub(crate) number: u64,
    pub(crate) version: u64,
    pub(crate) at: Duration,
    pub(crate) object: Option<StoredObject>,
    pub(crate) known: Known,
}

/// Contents that were found to be the same as a state's, by their hashes.
///
/// One is of whole objects, the other of metadata alone. Thousands of sights of a state have one of two contents, and a
/// comparison parses both sides.
#[derive(Debug, Default)]
pub(crate) struct Known([AtomicU64; 2]);

impl Known {
    pub(crate) fn has(&self, is_whole: bool, hash: u64) -> bool {
        self.0[usize::from(is_whole)].load(Ordering::Relaxed) == hash
    }

    pub(crate) fn keep(&self, is_whole: bool, hash: u64) {
        self.0[usize::from(is_whole)].store(hash, Ordering::Relaxed);
    }
}

impl Past {
    fn absent(number: u64, version: u64, at: Duration) -> Self {
        Self {
            number,
            version,
            at,
            object: None,
            known: Known::default(),
        }
    }

    /// Returns the state a write led to.
    ///
    /// For a deletion that is the first state without the object, whatever has come under its name since.
    pub(crate) fn of_write<'a>(states: &'a [Self], written: &Written) -> Option<&'a Self> {
        match written {
            // From the end: a restored backup may have led to the same version a second time.
            Written::State(version) => states
                .iter()
                .rfind(|past| past.version == *version && past.object.is_some()),
            Written::Gone(uid) => {
                let is_it = |past: &Self| past.object.as_ref().is_some_and(|it| it.uid() == uid);
                states.get(states.iter().rposition(is_it)? + 1)
            }
        }
    }

    pub(crate) fn is(&self, uid: &str, version: u64) -> bool {
        let object = self.object.as_ref();
        self.version == version && object.is_some_and(|object| object.uid() == uid)
    }
}

impl Oracle {
    pub(crate) fn saw(&mut self, moment: &Moment, event: &Event) {
        self.horizon.saw(moment, event);
        if let Event::Committed(commit) = event {
            self.committed(commit, moment);
        }
        if moment.at >= self.swept + SWEEP {
            self.swept = moment.at;
            self.forget();
        }
    }

    fn committed(&mut self, commit: &Commit, moment: &Moment) {
        match commit {
            Commit::Reset { revision } => self.reset(*revision, moment),
            Commit::Stored(object) => self.push(object, moment, true),
            Commit::Removed { last } => self.push(last, moment, false),
            _ => {}
        }
    }

    fn reset(&mut self, revision: u64, moment: &Moment) {
        self.epoch += 1;
        self.reset_at = moment.number;
        // The first is the start of the cluster.
        self.restored = (self.epoch > 1).then_some(moment.at);
        // What is not there any more is gone without a commit of its own.
        let objects = self.kinds.values_mut();
        for states in objects.flat_map(|kind| kind.states.values_mut()) {
            if states.last().is_some_and(|last| last.object.is_some()) {
                // The backup's objects are committed after this and follow the absence, even if they had never been
                // gone.
                states.push(Past::absent(2 * moment.number, revision, moment.at));
            }
        }
    }

    fn push(&mut self, object: &StoredObject, moment: &Moment, is_there: bool) {
        let Some(kind) = kind_of(object) else { return };
        let version = object.revision();
        let objects = self.kinds.entry(kind).or_default();
        objects.committed(moment.at, version);
        let states = objects.states.entry(object.key().clone()).or_default();
        // Doubled, to leave a number for the absence before the first state.
        let number = 2 * moment.number;
        if states.is_empty() {
            // It was not there until now; that may be forgotten, and still be shown.
            states.push(Past::absent(number - 1, 0, moment.at));
        }
        states.push(Past {
            object: is_there.then(|| object.clone()),
            ..Past::absent(number, version, moment.at)
        });
    }

    /// Forgets states that no checker can ask for any more.
    fn forget(&mut self) {
        for (kind, objects) in &mut self.kinds {
            if let Some(until) = self.horizon.of(kind) {
                objects.states.retain(|_, states| is_left(states, until));
            }
        }
    }

    /// Returns the states of an object in their order, without forgotten ones.
    pub(crate) fn states(&self, kind: &Gvk, key: &ObjectKey) -> &[Past] {
        let objects = self.kinds.get(&name_of(kind));
        let states = objects.and_then(|objects| objects.states.get(key));
        states.map_or(&[], Vec::as_slice)
    }

    /// Returns the present state of an object.
    pub(crate) fn now(&self, kind: &Gvk, key: &ObjectKey) -> Option<&StoredObject> {
        self.states(kind, key).last()?.object.as_ref()
    }

    /// Returns whether a process may still be shown an object with a uid.
    ///
    /// Its states are not forgotten then.
    pub(crate) fn remembers(&self, kind: &Gvk, key: &ObjectKey, uid: &str) -> bool {
        let mut objects = self.states(kind, key).iter();
        objects.any(|past| past.object.as_ref().is_some_and(|it| it.uid() == uid))
    }

    /// Returns the present objects of a kind in the order of their keys.
    pub(crate) fn all<'a>(
        &'a self,
        kind: &Gvk,
    ) -> impl Iterator<Item = (&'a ObjectKey, &'a StoredObject)> + use<'a> {
        let objects = self.kinds.get(&name_of(kind)).into_iter();
        let states = objects.flat_map(|objects| &objects.states);
        states.filter_map(|(key, states)| Some((key, states.last()?.object.as_ref()?)))
    }

    /// Returns an upper bound of the number of objects of a kind.
    pub(crate) fn count(&self, kind: &Gvk) -> usize {
        let objects = self.kinds.get(&name_of(kind));
        objects.map_or(0, |objects| objects.states.len())
    }

    /// Returns whether a process may not have noticed the last restore yet.
    pub(crate) fn may_be_unnoticed(&self, moment: &Moment) -> bool {
        let restored = self.restored;
        restored.is_some_and(|at| moment.at.saturating_sub(at) < NOTICED)
    }

    /// Returns the version of the last commit of a kind by some time.
    ///
    /// The time is a minute ago at most. Without a commit it is zero.
    pub(crate) fn newest(&self, kind: &Gvk, until: Duration) -> u64 {
        let recent = self.kinds.get(&name_of(kind)).map(|of| &of.recent);
        let mut by_then = recent.into_iter().flatten().rev();
        let newest = by_then.find(|(at, _)| *at <= until);
        newest.map_or(0, |(_, version)| *version)
    }

    /// Counts the restored backups, the start included.
    pub(crate) fn epoch(&self) -> u32 {
        self.epoch
    }
}

impl Objects {
    fn committed(&mut self, at: Duration, version: u64) {
        self.recent.push_back((at, version));
        while self
            .recent
            .get(1)
            .is_some_and(|(next, _)| *next + RECENT < at)
        {
            self.recent.pop_front();
        }
    }
}

/// Forgets states that were followed by a time; returns whether any is left.
fn is_left(states: &mut Vec<Past>, until: Duration) -> bool {
    let followed = states
        .iter()
        .skip(1)
        .take_while(|next| next.at <= until)
        .count();
    states.drain(..followed);
    // A key whose only state left is an old absence need not be remembered at all.
    let is_gone = |past: &Past| past.object.is_none() && past.at <= until;
    !matches!(states.as_slice(), [only] if is_gone(only))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
