//! What `lariat top`, `why` and `status` share: asking a console, naming its kinds, and words for its numbers.

mod client;
mod error;
mod grid;
mod history;
mod kinds;
mod options;
mod printer;
#[cfg(test)]
pub(crate) mod samples;
mod stream;
pub(crate) mod tables;
mod words;

pub(crate) use client::{Answer, Console, NAMES, controller_path, key_path};
pub(crate) use error::AskError;
pub(crate) use grid::{Column, Grid, Row, Tone, padded, shortened, width};
pub(crate) use history::{Line, heading, next_lines, run_lines, running_line, state_lines};
pub(crate) use kinds::{choose, choose_named, full_name};
pub(crate) use options::{Output, Source, TOKEN};
pub(crate) use printer::{Printer, has_colours, run_until_asked};
pub(crate) use words::{amount, bytes, counted, duration, quantile, rate};
