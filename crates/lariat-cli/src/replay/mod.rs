//! `lariat replay`: what a flight recorder recorded.

mod check;
mod filter;
mod options;
mod show;
mod summary;
mod timeline;
mod when;
mod words;

pub(crate) use options::Options;
pub(crate) use show::run;
