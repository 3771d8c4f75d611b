//! The actors of a run: incarnations of processes, and their handlers and subscribers.
#![expect(missing_docs, reason = "only the hidden `internals` show it")]

use std::sync::Arc;

use lariat_core::Gvk;

/// An incarnation of a process, from a start to its end or its kill.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IncarnationId {
    pub process: Arc<str>,
    /// The number of incarnations of the process before this one.
    pub number: u32,
}

impl IncarnationId {
    /// Returns the identity with which it holds leases.
    #[must_use]
    pub fn identity(&self) -> String {
        format!("{}.{}", self.process, self.number)
    }
}

/// A handler of a process, from its registration to its end.
///
/// A process that is killed and started again, and a handler that leaves and comes back under its name, is another
/// one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HandlerId {
    pub incarnation: IncarnationId,
    pub kind: Gvk,
    pub name: Arc<str>,
}

/// A subscriber of a kind's changes in a process.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subscriber {
    pub incarnation: IncarnationId,
    pub kind: Gvk,
    pub number: u64,
}
