//! Warnings about objects that are accepted.
//!
//! Source: `warnings.go` in the folders of `k8s.io/kubernetes/pkg/api`, and the strategies in `pkg/registry`.

mod addresses;
mod certificates;
mod collected;
mod definitions;
mod finalizers;
mod kinds;
mod labels;
mod paths;
mod pods;
mod services;
mod storage;

pub use kinds::{deletion_warning, warnings};
