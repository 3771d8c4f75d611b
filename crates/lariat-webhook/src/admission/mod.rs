//! Admission: requests, verdicts, mutations, and how a handler is called.

mod admission;
mod failure;
mod handler;
mod mutation;
mod object;
mod operation;
mod reviewer;
mod verdict;

pub use admission::Admission;
pub use failure::{ReviewError, ReviewResult};
pub use mutation::Mutation;
pub use object::Undecodable;
pub use operation::Operation;
pub use verdict::Verdict;

pub(crate) use failure::message;
pub(crate) use handler::{Handler, defaulting, mutating, validating};
pub(crate) use reviewer::review;
