//! What a worker gets, and what it says about it.

use std::time::Duration;

use crate::{LaneId, Lanes, Priority};

/// A key on its way to a worker.
#[derive(Debug)]
pub struct Taken<K, P> {
    /// Names the hand-out to [`QueueCore::finish`](crate::QueueCore::finish).
    pub slot: u32,
    /// The key.
    pub key: K,
    /// The lanes that are due.
    pub lanes: Lanes,
    /// The merged payloads.
    pub payload: P,
    /// The highest priority asked for.
    pub priority: Priority,
    /// How long the key was ready before it was handed out.
    pub waited: Duration,
    /// Failures in a row of the lanes that have any.
    pub failures: Box<[(LaneId, u32)]>,
}

/// What became of one lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict<P> {
    /// Nothing is left to do; failures are forgotten.
    Done,
    /// The lane asked to come again; failures are forgotten.
    Again {
        /// When; zero means at once, behind what is queued.
        after: Duration,
        /// What travels with it.
        payload: P,
        /// How urgent it is then; none for as urgent as the key was when it was handed out.
        priority: Option<Priority>,
    },
    /// The lane failed and is tried again; its failures count up.
    Failed {
        /// When.
        after: Duration,
        /// What travels with it.
        payload: P,
        /// How urgent it is then; none for as urgent as the key was when it was handed out.
        priority: Option<Priority>,
    },
    /// The lane is tried again, and its failures stay as they are.
    Held {
        /// When.
        after: Duration,
        /// What travels with it.
        payload: P,
        /// How urgent it is then; none for as urgent as the key was when it was handed out.
        priority: Option<Priority>,
    },
}
