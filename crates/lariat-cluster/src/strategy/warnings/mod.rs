//! What clients are warned of although it is accepted.
//!
//! Source: `warnings.go` in the folders of `k8s.io/kubernetes/pkg/api`.

mod kinds;
mod pods;

pub(crate) use kinds::{deletion_warning, warnings};
