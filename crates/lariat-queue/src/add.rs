//! A request to the queue: which lanes of a key, when, how urgent, and why.

use std::time::Duration;

/// What travels with a key: in Lariat, the causes of its being here.
///
/// When two adds of one key merge into one dequeue, so do their payloads; the queue gives them no
/// other meaning. They merge in the order in which they came, with two exceptions: what was delayed,
/// and what a worker gave back or had to do again, counts as older than all that is due meanwhile.
/// Merging happens under the lock of the queue, so it must be quick and must not use the queue.
pub trait Payload: Default {
    /// Takes in the payload of a later add.
    fn merge(&mut self, later: Self);
}

impl Payload for () {
    fn merge(&mut self, (): Self) {}
}

/// How urgent a key is; higher levels leave first.
///
/// A level cannot starve another: see [`Ageing`](crate::Ageing).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Work that can wait: initial lists, resyncs.
    Low,
    /// Fresh changes.
    #[default]
    Normal,
    /// What should overtake fresh changes.
    High,
}

impl Priority {
    /// All priorities, the lowest first.
    pub const ALL: [Self; 3] = [Self::Low, Self::Normal, Self::High];

    pub(crate) const LEVELS: usize = Self::ALL.len();

    /// Returns the word for it, in lower case.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Normal => "normal",
            Self::High => "high",
        }
    }

    /// Counts from zero, the highest level first.
    pub(crate) fn level(self) -> usize {
        Self::High as usize - self as usize
    }
}

/// One request to a queue: which lanes, when, how urgent, and why.
///
/// ```
/// use std::time::Duration;
/// use lariat_queue::{Add, Priority, WorkQueue};
///
/// let queue: WorkQueue<String> = WorkQueue::default();
/// queue.add("pod-a".into(), Add::after(Duration::from_secs(30)).priority(Priority::Low));
/// ```
#[derive(Debug, Clone)]
#[must_use = "a request does nothing until it is added to a queue"]
pub struct Add<P = ()> {
    pub(crate) lanes: Lanes,
    pub(crate) after: Duration,
    pub(crate) kept: bool,
    pub(crate) priority: Priority,
    pub(crate) failures: u32,
    pub(crate) payload: P,
}

impl<P: Default> Add<P> {
    /// Makes all lanes of the key due now, at normal priority.
    pub fn now() -> Self {
        Self {
            lanes: Lanes::ALL,
            after: Duration::ZERO,
            kept: false,
            priority: Priority::default(),
            failures: 0,
            payload: P::default(),
        }
    }

    /// Makes all lanes due after a delay; zero means now, and what no clock can hold means never.
    ///
    /// The delay is the longest the lanes wait: when they come due earlier for another reason, that
    /// dequeue takes its place (controller-runtime's rule that what is ready beats what waits). See
    /// [`kept`](Self::kept).
    pub fn after(delay: Duration) -> Self {
        Self {
            after: delay,
            ..Self::now()
        }
    }
}

impl<P> Add<P> {
    /// Restricts the request to some lanes; an empty set makes it a no-op.
    pub fn lanes(self, lanes: impl Into<Lanes>) -> Self {
        Self {
            lanes: lanes.into(),
            ..self
        }
    }

    /// Keeps the delay: the lanes come due when it ends, also if they were due before (client-go's rule
    /// that a key may be both queued and delayed). Of two kept delays of a lane the earlier wins.
    pub fn kept(self) -> Self {
        Self { kept: true, ..self }
    }

    /// Sets the priority; a key that is already queued keeps the higher of the two.
    pub fn priority(self, priority: Priority) -> Self {
        Self { priority, ..self }
    }

    /// Says how many times in a row the lanes have failed, if the queue may have forgotten it; of two counts the
    /// higher is kept.
    pub fn failures(self, failures: u32) -> Self {
        Self { failures, ..self }
    }

    /// Sets what travels with the key.
    pub fn payload(self, payload: P) -> Self {
        Self { payload, ..self }
    }
}

/// Names one lane of every key.
///
/// The queue gives numbers no meaning, except that [`WHOLE`](Self::WHOLE) is the key as such.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaneId(u32);

impl LaneId {
    /// The key as a whole: due means that every lane is due.
    pub const WHOLE: Self = Self(u32::MAX);

    /// Names a lane.
    ///
    /// # Panics
    ///
    /// If `number` is `u32::MAX`, which is [`WHOLE`](Self::WHOLE).
    #[must_use]
    pub fn new(number: u32) -> Self {
        assert_ne!(number, u32::MAX, "u32::MAX is LaneId::WHOLE");
        Self(number)
    }

    /// Returns the number, `u32::MAX` for [`WHOLE`](Self::WHOLE).
    #[must_use]
    pub fn number(self) -> u32 {
        self.0
    }
}

/// A set of lanes, or all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lanes(Repr);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Repr {
    All,
    /// Sorted, without duplicates and without `WHOLE`.
    Set(Box<[LaneId]>),
}

impl Lanes {
    /// All lanes, those included that do not exist yet.
    pub const ALL: Self = Self(Repr::All);

    /// No lane.
    #[must_use]
    pub fn none() -> Self {
        Self(Repr::Set(Box::default()))
    }

    /// Returns whether every lane is meant.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.0 == Repr::All
    }

    /// Returns whether no lane is meant.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(&self.0, Repr::Set(set) if set.is_empty())
    }

    /// Returns whether a lane is meant.
    #[must_use]
    pub fn contains(&self, lane: LaneId) -> bool {
        match &self.0 {
            Repr::All => true,
            Repr::Set(set) => set.binary_search(&lane).is_ok(),
        }
    }

    /// Returns whether every lane of another set is meant too.
    #[must_use]
    pub fn includes(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Repr::All, _) => true,
            (Repr::Set(_), Repr::All) => false,
            (Repr::Set(_), Repr::Set(theirs)) => theirs.iter().all(|lane| self.contains(*lane)),
        }
    }

    /// Iterates over the lanes; all of them are named [`LaneId::WHOLE`].
    pub fn ids(&self) -> impl Iterator<Item = LaneId> {
        let ids: &[LaneId] = match &self.0 {
            Repr::All => &[LaneId::WHOLE],
            Repr::Set(set) => set,
        };
        ids.iter().copied()
    }

    /// Adds one lane; [`LaneId::WHOLE`] means all.
    pub fn insert(&mut self, lane: LaneId) {
        match &mut self.0 {
            Repr::All => {}
            Repr::Set(_) if lane == LaneId::WHOLE => self.0 = Repr::All,
            Repr::Set(set) => {
                if let Err(at) = set.binary_search(&lane) {
                    let (before, behind) = set.split_at(at);
                    *set = [before, &[lane], behind].concat().into();
                }
            }
        }
    }

    /// Adds the lanes of another set.
    pub fn merge(&mut self, other: &Self) {
        match (&mut self.0, &other.0) {
            (Repr::All, _) => {}
            (_, Repr::All) => self.0 = Repr::All,
            (Repr::Set(mine), Repr::Set(theirs)) if mine.is_empty() => *mine = theirs.clone(),
            (Repr::Set(mine), Repr::Set(theirs)) => {
                if theirs.iter().any(|lane| mine.binary_search(lane).is_err()) {
                    *mine = sorted(mine.iter().chain(theirs).copied());
                }
            }
        }
    }
}

impl From<LaneId> for Lanes {
    fn from(lane: LaneId) -> Self {
        Self::from_iter([lane])
    }
}

impl FromIterator<LaneId> for Lanes {
    fn from_iter<I: IntoIterator<Item = LaneId>>(lanes: I) -> Self {
        let set = sorted(lanes);
        if set.last() == Some(&LaneId::WHOLE) {
            Self::ALL
        } else {
            Self(Repr::Set(set))
        }
    }
}

fn sorted(lanes: impl IntoIterator<Item = LaneId>) -> Box<[LaneId]> {
    let mut set: Vec<LaneId> = lanes.into_iter().collect();
    set.sort_unstable();
    set.dedup();
    set.into_boxed_slice()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(numbers: impl IntoIterator<Item = u32>) -> Lanes {
        numbers.into_iter().map(LaneId::new).collect()
    }

    #[test]
    fn merging_never_loses_a_lane() {
        let mut lanes = set([3, 1, 3]);
        lanes.merge(&set([2, 1]));
        assert_eq!(lanes, set([1, 2, 3]));
        lanes.merge(&Lanes::none());
        assert_eq!(lanes, set([1, 2, 3]));
        lanes.merge(&Lanes::ALL);
        assert!(lanes.contains(LaneId::new(99)));
        lanes.merge(&set([1]));
        assert!(lanes.is_all());
    }

    #[test]
    fn the_whole_key_means_all_lanes() {
        assert!(Lanes::from(LaneId::WHOLE).is_all());
    }
}
