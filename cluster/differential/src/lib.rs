//! Compares the embedded cluster with a genuine server, by random sequences of requests.
//!
//! A [`Generator`](generate::Generator) makes sequences from a seed: writes that are valid and that are not, patches by
//! two managers, lists, watches. A [`Bench`](bench::Bench) makes their requests on both servers; what two servers never
//! have in common, such as uids and times, is taken out of the answers, and what still differs gets a class. Classes
//! that are [known](known::Known) are counted, others are reported with the [shortest](shrink::shrink) sequence that
//! shows them.

pub mod edit;
pub mod step;

pub mod kinds;

pub mod generate;

pub mod answer;
mod fill;
pub mod side;

pub mod compare;
mod normal;

pub mod recording;
pub mod replay;

pub mod bench;
mod leftovers;
pub mod shrink;

pub mod known;
pub mod report;
