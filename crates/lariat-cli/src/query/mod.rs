//! `lariat query`: a kind of a cluster, read once into a SQL cache in memory, and asked one question.

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
