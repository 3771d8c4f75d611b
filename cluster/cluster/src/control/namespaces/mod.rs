//! The namespace lifecycle: a deleted namespace is emptied first.
//!
//! Source: `k8s.io/kubernetes/pkg/controller/namespace/deletion`.

mod conditions;
mod contents;
mod controller;

pub(super) use controller::Namespaces;
