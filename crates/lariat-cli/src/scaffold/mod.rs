//! `lariat new`: a scaffold of an operator.

mod names;
mod options;
mod permissions;
mod project;
mod source;
mod taken;
mod write;

#[cfg(test)]
pub(crate) use names::{Group, Kind, Name};
pub(crate) use options::Options;
pub(crate) use write::run;
