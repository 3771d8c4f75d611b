//! The kubeconfig of `--kubeconfig`: the cluster's entries come into it at the start, and go at the end.
//!
//! As with kind, the file is usually one that has the entries of other clusters already.

mod entries;
mod file;
mod rewrite;

pub(crate) use rewrite::Kubeconfig;
