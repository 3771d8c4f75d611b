//! A request to add a key, and its parts: payload, priority and lanes.

use std::time::Duration;

/// Data that travels with a key; in Lariat, the reasons for its adds.
///
/// When two adds of one key merge, their payloads merge; the queue does nothing else with them. Payloads merge in the
/// order in which the adds become due, with one exception: the payload of a key that a worker gives back or retries
/// counts as older than everything added meanwhile.
///
/// Merging happens under the lock of the queue, so it must be quick and must not use the queue.
///
/// ```
/// use lariat::queue::{Add, Payload, WorkQueue};
///
/// #[derive(Clone, Default)]
/// struct Reasons(Vec<&'static str>);
///
/// impl Payload for Reasons {
///     fn merge(&mut self, later: Self) {
///         self.0.extend(later.0);
///     }
/// }
///
/// let queue: WorkQueue<&str, Reasons> = WorkQueue::default();
/// queue.add("pod-a", Add::now().payload(Reasons(vec!["created"])));
/// queue.add("pod-a", Add::now().payload(Reasons(vec!["updated"])));
/// let work = queue.try_get().expect("the key is due");
/// assert_eq!(work.payload().0, ["created", "updated"]);
/// ```
pub trait Payload: Default + Clone {
    /// Merges the payload of a later add into this one.
    fn merge(&mut self, later: Self);
}

impl Payload for () {
    fn merge(&mut self, (): Self) {}
}

/// The urgency of a key; higher priorities are dequeued first.
///
/// Lower priorities do not starve: see [`Ageing`](crate::Ageing).
///
/// ```
/// use lariat::queue::{Add, WorkQueue};
/// use lariat::Priority;
///
/// let queue: WorkQueue<&str> = WorkQueue::default();
/// queue.add("listed", Add::now().priority(Priority::Low));
/// queue.add("changed", Add::now());
/// assert_eq!(*queue.try_get().expect("a key is due").key(), "changed");
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Work that can wait, such as initial lists and resyncs.
    Low,
    /// Changes; the default.
    #[default]
    Normal,
    /// Work that is dequeued before changes.
    High,
}

impl Priority {
    /// All priorities, from lowest to highest.
    pub const ALL: [Self; 3] = [Self::Low, Self::Normal, Self::High];

    /// The number of priorities.
    pub(crate) const LEVELS: usize = Self::ALL.len();

    /// Returns the name in lower case.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Normal => "normal",
            Self::High => "high",
        }
    }

    /// Returns the index of the priority's queue; the highest priority has index 0.
    pub(crate) fn level(self) -> usize {
        Self::High as usize - self as usize
    }
}

/// A request to add a key: which lanes, after what delay, how urgent, and why.
///
/// The default is all lanes, now, with normal priority.
///
/// ```
/// use std::time::Duration;
/// use lariat::queue::{Add, WorkQueue};
/// use lariat::Priority;
///
/// let queue: WorkQueue<String> = WorkQueue::default();
/// queue.add("pod-a".into(), Add::after(Duration::from_secs(30)).priority(Priority::Low));
/// ```
#[derive(Debug, Clone)]
#[must_use = "a request does nothing until it is added to a queue"]
pub struct Add<P = ()> {
    /// The lanes that become due.
    pub(crate) lanes: Lanes,
    /// The delay; zero means now.
    pub(crate) after: Duration,
    /// The priority.
    pub(crate) priority: Priority,
    /// The payload.
    pub(crate) payload: P,
}

impl<P: Default> Add<P> {
    /// Creates an add of all lanes, now, with normal priority.
    pub fn now() -> Self {
        Self {
            lanes: Lanes::ALL,
            after: Duration::ZERO,
            priority: Priority::default(),
            payload: P::default(),
        }
    }

    /// Creates an add of all lanes after a delay; zero means now.
    ///
    /// This is client-go's `AddAfter`. The lanes become due at that time even if they become due or run earlier for
    /// another reason; the key may be ready and delayed at the same time. If a lane is delayed already, the earlier
    /// deadline counts for both adds. Delays of more than thirty years count as thirty years.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lariat::queue::{Add, WorkQueue};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let queue: WorkQueue<&str> = WorkQueue::default();
    /// queue.add("pod-a", Add::after(Duration::from_millis(10)));
    /// assert!(queue.try_get().is_none());
    /// queue.add("pod-a", Add::now());
    /// queue.try_get().expect("it was added for now").done();
    /// assert_eq!(*queue.get().await.expect("and again after the delay").key(), "pod-a");
    /// # }
    /// ```
    pub fn after(delay: Duration) -> Self {
        Self {
            after: delay,
            ..Self::now()
        }
    }
}

impl<P> Add<P> {
    /// Sets the lanes (default: all). With an empty set, the add does nothing.
    ///
    /// ```
    /// use lariat::queue::{Add, LaneId, WorkQueue};
    ///
    /// let queue: WorkQueue<&str> = WorkQueue::default();
    /// queue.add("pod-a", Add::now().lanes(LaneId::new(1)));
    /// let work = queue.try_get().expect("the key is due");
    /// assert!(!work.lanes().contains(LaneId::new(2)));
    /// ```
    pub fn lanes(self, lanes: impl Into<Lanes>) -> Self {
        Self {
            lanes: lanes.into(),
            ..self
        }
    }

    /// Sets the priority (default: normal). A ready key keeps the higher of two.
    pub fn priority(self, priority: Priority) -> Self {
        Self { priority, ..self }
    }

    /// Sets the payload (default: [`Default::default`]).
    pub fn payload(self, payload: P) -> Self {
        Self { payload, ..self }
    }
}

/// The identifier of a lane, the same for all keys.
///
/// The caller chooses the numbers. [`WHOLE`](Self::WHOLE) is reserved for the key as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaneId(u32);

impl LaneId {
    /// The key as a whole: if it is due, all lanes are due.
    pub const WHOLE: Self = Self(u32::MAX);

    /// Creates the identifier of a lane.
    ///
    /// # Panics
    ///
    /// If `number` is `u32::MAX`, which is [`WHOLE`](Self::WHOLE).
    #[must_use]
    pub fn new(number: u32) -> Self {
        assert_ne!(number, u32::MAX, "u32::MAX is LaneId::WHOLE");
        Self(number)
    }
}

/// A set of lanes, or all lanes.
///
/// ```
/// use lariat::queue::{LaneId, Lanes};
///
/// let [one, two, three] = [1, 2, 3].map(LaneId::new);
/// let mut lanes: Lanes = [one, two].into_iter().collect();
/// assert!(lanes.contains(one) && !lanes.contains(three));
/// lanes.merge(&Lanes::ALL);
/// assert!(lanes.contains(three));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lanes(Repr);

/// The representation of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Repr {
    /// All lanes.
    All,
    /// Sorted, without duplicates and without `WHOLE`.
    Set(Box<[LaneId]>),
}

impl Lanes {
    /// All lanes, including lanes that are not in use yet.
    pub const ALL: Self = Self(Repr::All);

    /// Returns the empty set.
    #[must_use]
    pub fn none() -> Self {
        Self(Repr::Set(Box::default()))
    }

    /// Returns whether the set is [`Lanes::ALL`].
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.0 == Repr::All
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(&self.0, Repr::Set(set) if set.is_empty())
    }

    /// Returns whether the set contains a lane.
    #[must_use]
    pub fn contains(&self, lane: LaneId) -> bool {
        match &self.0 {
            Repr::All => true,
            Repr::Set(set) => set.binary_search(&lane).is_ok(),
        }
    }

    /// Returns whether the set contains all lanes of another set.
    #[must_use]
    pub fn includes(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Repr::All, _) => true,
            (Repr::Set(_), Repr::All) => false,
            (Repr::Set(_), Repr::Set(theirs)) => theirs.iter().all(|lane| self.contains(*lane)),
        }
    }

    /// Iterates over the lanes; [`Lanes::ALL`] yields only [`LaneId::WHOLE`].
    pub fn ids(&self) -> impl Iterator<Item = LaneId> {
        let ids: &[LaneId] = match &self.0 {
            Repr::All => &[LaneId::WHOLE],
            Repr::Set(set) => set,
        };
        ids.iter().copied()
    }

    /// Adds a lane; [`LaneId::WHOLE`] makes it [`Lanes::ALL`].
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
                // Most merges add no lane, and then nothing is allocated.
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
        // `WHOLE` has the greatest number, so it is last.
        if set.last() == Some(&LaneId::WHOLE) {
            Self::ALL
        } else {
            Self(Repr::Set(set))
        }
    }
}

/// Returns the lanes in order, each once.
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
