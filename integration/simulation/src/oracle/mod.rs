//! Every state of every object that a process may still show.

mod horizon;
mod kind;
mod oracle;

pub(crate) use oracle::{NOTICED, Oracle, Past, SWEEP};
