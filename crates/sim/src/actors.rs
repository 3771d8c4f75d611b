//! The actors of a run: incarnations of processes, and their handlers and subscribers.

use std::sync::Arc;

use lariat_core::Gvk;

/// An incarnation of a process, from a start to its end or its kill.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct IncarnationId {
    pub(crate) process: Arc<str>,
    /// The number of incarnations of the process before this one.
    pub(crate) number: u32,
}

impl IncarnationId {
    /// Returns the identity with which it holds leases.
    pub(crate) fn identity(&self) -> String {
        format!("{}.{}", self.process, self.number)
    }
}

/// A handler of a process, from its registration to its end.
///
/// A process that is killed and started again, and a handler that leaves and comes back under its name, is another
/// one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct HandlerId {
    pub(crate) incarnation: IncarnationId,
    pub(crate) kind: Gvk,
    pub(crate) name: Arc<str>,
}

/// A subscriber of a kind's changes in a process.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Subscriber {
    pub(crate) incarnation: IncarnationId,
    pub(crate) kind: Gvk,
    pub(crate) number: u64,
}
