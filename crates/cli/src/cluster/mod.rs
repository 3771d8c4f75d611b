//! `lariat cluster`: a cluster from its start to its end.

mod bounds;
mod console;
mod options;
mod serve;

pub(crate) use options::{Options, TOKEN};
pub(crate) use serve::run;
