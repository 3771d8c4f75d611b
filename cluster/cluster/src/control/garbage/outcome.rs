//! The outcome of processing an object.

/// The name of the garbage collector.
pub(super) const MANAGER: &str = "kube-controller-manager";

/// The result of a look at an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    /// It changed meanwhile.
    Again,
    /// The kind of an owner is not served, so it is not known whether the owner exists.
    Unresolved,
}
