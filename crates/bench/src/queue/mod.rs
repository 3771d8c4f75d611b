//! The work queue, case by case.
//!
//! An operation is one add. Keys are `Arc<str>` of the form `namespace/name` and are made before the
//! clock runs. Every add is followed until its key was taken and finished.

mod kube_rs;
mod lariat;
mod load;
mod queue;

pub(crate) use queue::{CASES, SUBJECTS, plan, run};
