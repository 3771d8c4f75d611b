//! The transition table: what a cache knows of an object's name, and what each event makes of it.
//!
//! This is the only place that decides whether something that arrives is older than what is known. `own` remembers the
//! writes of this process, `writer` and `listing` find out which event has happened and carry out its effect. The
//! table is printed in `docs/internals.md`; a test compares the two.
//!
//! Four orders lead to an [`Age`] and a [`View`]:
//!
//! 1. **Versions** order the states of a name on the server, across the objects of the name. An answer about an object
//!    that is not cached is also compared with the version up to which deletions are known (`reached`).
//! 2. **Numbers of lists** order lists and answers: a list that began after the answer to a write contains the write;
//!    one that began before may lack it.
//! 3. **Numbers of requests** order the writes of this process by when they were sent, because the answer to a deletion
//!    has no version. If the deleted object was cached, later versions of the name are of its successors all the same.
//! 4. **Time** only forgets: a minute after a deletion, its object is believed to exist if the server says so.

use std::cmp::Ordering;

use lariat_core::ResourceVersion;

/// What a cache knows of a name.
///
/// It is cached or not, and the last write of this process is remembered or not. Where a write is forgotten without an
/// event of the name, `Written` becomes `Reported` and `Removed` becomes `Absent`: once a list that began after its
/// answer has ended, or a minute after it, when many are remembered and no list in progress is older.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// There is no object.
    Absent,
    /// The object is cached as a list or a watch reported it.
    Reported,
    /// The object is cached as an answer had it, and neither a list nor a watch has reported it yet.
    Written,
    /// A write of this process has deleted the object, or taken it out of the selection; it is not cached.
    ///
    /// Earlier states may still arrive.
    Removed,
}

/// Something that concerns a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// A watch reports that an object exists, in a state of this age.
    Watched(Age),
    /// A watch reports that an object was deleted or has left the selection.
    Ended(Which, Age),
    /// A list contains an object.
    Listed(Age, View),
    /// A list that does not contain the cached object has ended.
    Missing(View),
    /// A write of this process was answered: the object exists and is selected.
    Written(Age),
    /// A write of this process was answered: the object is not selected.
    Left(Age),
    /// A deletion by this process was answered.
    Deleted(Which),
    /// The selection has changed and excludes the object.
    Deselected,
}

/// How old a state is, compared with the cached one, or else with the last write of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Age {
    /// It is of an object that this process has deleted, or was written before such a deletion.
    Hidden,
    Older,
    Same,
    /// It is newer, or there is nothing to compare it with.
    Newer,
    /// The versions cannot be compared, or are equal for different states.
    Unordered,
}

/// Which object of the name an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    Cached,
    /// An earlier or a later one, or nothing is cached.
    Another,
}

/// What a list shows of the last write of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum View {
    /// The list contains it: the list began after the answer, or there is no such write.
    Contains,
    /// The list began before the answer, and may be older than the write.
    MayLack,
}

/// What is to be done with the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// Nothing: the event is outdated or does not concern what is known.
    Ignored,
    /// The event is taken note of; the cached object, or its absence, stays.
    Noted,
    /// The state of the event is cached and published.
    Put,
    /// The cached object is removed, and its deletion published.
    Removed,
}

impl State {
    /// Returns the state of a name that is cached or not, and has a remembered write or not.
    pub(super) const fn of(is_cached: bool, is_remembered: bool) -> Self {
        match (is_cached, is_remembered) {
            (false, false) => Self::Absent,
            (true, false) => Self::Reported,
            (true, true) => Self::Written,
            (false, true) => Self::Removed,
        }
    }

    /// Returns whether the last write of this process is remembered.
    pub(super) const fn is_remembered(self) -> bool {
        matches!(self, Self::Written | Self::Removed)
    }
}

impl Event {
    /// Returns whether the event is the answer to a write of this process.
    pub(super) const fn is_answer(self) -> bool {
        matches!(self, Self::Written(_) | Self::Left(_) | Self::Deleted(_))
    }

    /// Returns whether the event has the cached state.
    pub(super) const fn is_same(self) -> bool {
        let (Self::Watched(age) | Self::Listed(age, _) | Self::Written(age)) = self else {
            return false;
        };
        matches!(age, Age::Same)
    }
}

impl Age {
    /// Compares a version with a known one; empty versions have no order.
    pub(super) fn of(version: &ResourceVersion, known: &ResourceVersion) -> Self {
        match version.compare(known) {
            Some(Ordering::Less) => Self::Older,
            Some(Ordering::Equal) if !version.is_empty() => Self::Same,
            Some(Ordering::Greater) => Self::Newer,
            Some(Ordering::Equal) | None => Self::Unordered,
        }
    }
}

/// Returns what is known of a name after an event, and what is to be done.
pub(super) const fn next(state: State, event: Event) -> (State, Effect) {
    match event {
        Event::Watched(age) => watched(state, age),
        Event::Ended(which, age) => ended(state, which, age),
        Event::Listed(age, view) => listed(state, age, view),
        Event::Missing(view) => missing(state, view),
        Event::Written(age) => written(state, age),
        Event::Left(age) => left(state, age),
        Event::Deleted(which) => deleted(state, which),
        Event::Deselected => deselected(state),
    }
}

/// A watch reports states in their order, but from a version on that may be before what is known.
const fn watched(state: State, age: Age) -> (State, Effect) {
    match (state, age) {
        (_, Age::Hidden | Age::Older) | (State::Reported, Age::Same) => (state, Effect::Ignored),
        // The echo of the write.
        (State::Written, Age::Same) => (State::Reported, Effect::Noted),
        // Where versions cannot be compared, what arrived last is believed.
        (_, Age::Same | Age::Newer | Age::Unordered) => (State::Reported, Effect::Put),
    }
}

const fn ended(state: State, which: Which, age: Age) -> (State, Effect) {
    match (state, which, age) {
        // The object had left the selection before this process wrote it into the selection again.
        (State::Written, Which::Cached, Age::Older) => (state, Effect::Ignored),
        // Whatever the version: the server says so, and it may have been restored.
        (State::Reported | State::Written, Which::Cached, _) => (State::Absent, Effect::Removed),
        // The watch has passed the write.
        (State::Removed, _, Age::Same | Age::Newer) => (State::Absent, Effect::Noted),
        // The end of an earlier object, which its successor survives.
        _ => (state, Effect::Ignored),
    }
}

const fn listed(state: State, age: Age, view: View) -> (State, Effect) {
    match (state, age, view) {
        (_, Age::Hidden, _) => (state, Effect::Ignored),
        (State::Written | State::Removed, Age::Older, View::MayLack) => (state, Effect::Ignored),
        (State::Reported | State::Written, Age::Same, _) => (State::Reported, Effect::Noted),
        // Even if it is older: the list began later, so the server was restored from a backup.
        _ => (State::Reported, Effect::Put),
    }
}

const fn missing(state: State, view: View) -> (State, Effect) {
    match (state, view) {
        (State::Reported, _) | (State::Written, View::Contains) => (State::Absent, Effect::Removed),
        _ => (state, Effect::Ignored),
    }
}

/// An answer may come after the watch has reported the write, or a later one, or the end of the object.
const fn written(state: State, age: Age) -> (State, Effect) {
    match (state, age) {
        (_, Age::Hidden | Age::Older) => (state, Effect::Ignored),
        // Where versions cannot be compared, the watch may be ahead, and will show the write in any case.
        (State::Reported | State::Written, Age::Same | Age::Unordered) => (state, Effect::Ignored),
        (_, Age::Same | Age::Newer | Age::Unordered) => (State::Written, Effect::Put),
    }
}

const fn left(state: State, age: Age) -> (State, Effect) {
    match (state, age) {
        (_, Age::Hidden | Age::Older) => (state, Effect::Ignored),
        (State::Reported | State::Written, Age::Unordered) => (state, Effect::Ignored),
        (State::Reported | State::Written, Age::Same | Age::Newer) => {
            (State::Removed, Effect::Removed)
        }
        (State::Absent | State::Removed, _) => (State::Removed, Effect::Noted),
    }
}

const fn deleted(state: State, which: Which) -> (State, Effect) {
    match (state, which) {
        (State::Reported | State::Written, Which::Cached) => (State::Removed, Effect::Removed),
        // The object was never cached, or its successor is: its uid is remembered, which makes its states hidden.
        _ => (state, Effect::Ignored),
    }
}

const fn deselected(state: State) -> (State, Effect) {
    match state {
        State::Reported => (State::Absent, Effect::Removed),
        State::Written => (State::Removed, Effect::Removed),
        State::Absent | State::Removed => (state, Effect::Ignored),
    }
}
