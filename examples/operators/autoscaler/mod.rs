//! Autoscaler: keeps a desired number of pods in a target namespace.
//!
//! It is a small ReplicaSet across namespaces. An owner reference to an object in another namespace is invalid, and the
//! garbage collector deletes objects that have one. So two labels name the Autoscaler of a pod, and a finalizer deletes
//! the pods with their Autoscaler. One label with `namespace/name` is not possible, because label values have no
//! slashes. An annotation could have that value, but neither the cache nor the API server finds objects by annotations.
//!
//! Each call creates or deletes at most one pod. That change calls the reconciler again, until nothing is left to do.
//! The cache contains what was written through it, so a call always sees the pod that the call before has created.

mod kind;
mod scaler;
#[cfg(test)]
mod tests;

pub use kind::{Autoscaler, AutoscalerSpec, AutoscalerStatus};
pub use scaler::{OWNER_NAME, OWNER_NAMESPACE, register};
