//! `lariat query`: reads a kind into a SQL cache in memory, and runs one query.

mod ask;
mod columns;
mod discovery;
mod fields;
mod kinds;
mod openapi;
mod options;
mod output;
mod read;

pub(crate) use ask::run;
pub(crate) use options::Options;
