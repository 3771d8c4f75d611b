//! What a producer says when it adds a key.

use std::time::Duration;

use crate::Lanes;

/// What travels with a key: in Lariat, the causes of its being here.
///
/// When two adds of one key merge into one hand-out, so do their payloads; the queue gives them no
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
    /// hand-out takes its place (controller-runtime's rule that what is ready beats what waits). See
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
