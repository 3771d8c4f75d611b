//! `lariat status`: the state of a program on one screen.

mod options;
mod show;
mod text;

pub(crate) use options::Options;
pub(crate) use show::run;
