//! Lanes: the independent pieces of work that share a key.

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
