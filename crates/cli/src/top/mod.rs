//! `lariat top`: a program live, in a terminal.

mod app;
mod content;
mod draw;
mod header;
mod key_rows;
mod keys;
mod lists;
mod live;
mod options;
mod run;
mod screen;
mod session;
#[cfg(test)]
mod tests;

pub(crate) use options::Options;
pub(crate) use run::run;
