//! The garbage collector: deletes what has lost all its owners.
//!
//! Source: `k8s.io/kubernetes/pkg/controller/garbagecollector`. It differs in reading the store itself
//! instead of a copy, so what it sees of an object is never old.

mod collect;
mod controller;
mod invalid;
mod outcome;
mod owner;

pub(super) use controller::Collector;
