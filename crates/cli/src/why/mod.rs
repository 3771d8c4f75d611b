//! `lariat why`: the history of a key, and of the keys that caused its runs.

mod options;
mod show;
mod text;
mod trace;

pub(crate) use options::Options;
pub(crate) use show::run;
