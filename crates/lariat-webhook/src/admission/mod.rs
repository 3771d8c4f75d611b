//! Admission reviews: from the body of a request to the answer.
//!
//! [`review`] reads the body and calls a [`Handler`] within the deadline. The handler gets an [`Admission`], whose
//! `object`s are decoded on access, and returns a [`Verdict`] or a [`Mutation`]. A call that fails is a `failure`.

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
