//! The namespace lifecycle: a namespace that is deleted takes everything in it along.
//!
//! Source: `k8s.io/kubernetes/pkg/controller/namespace/deletion`.

mod conditions;
mod contents;
mod controller;

pub(super) use controller::Namespaces;
