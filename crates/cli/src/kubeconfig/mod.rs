//! The kubeconfig of `--kubeconfig`: the cluster's entries are added at the start, and removed at the end.
//!
//! As with kind, the file usually has entries of other clusters.

mod entries;
mod file;
mod rewrite;

pub(crate) use rewrite::Kubeconfig;
