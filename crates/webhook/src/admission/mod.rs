//! Admission reviews: from the body of a request to the answer.
//!
//! [`review`] reads the body and calls a [`Handler`] within the deadline. The handler gets an [`Admission`], whose
//! `object`s are decoded on access, and returns a [`Decision`] or a [`Mutation`]. A call that fails is a `failure`.

mod admission;
mod decision;
mod failure;
mod handler;
mod mutation;
mod object;
mod reviewer;

pub use admission::Admission;
pub use decision::Decision;
pub use failure::{ReviewError, ReviewResult};
pub use lariat_core::Operation;
pub use mutation::Mutation;
pub use object::Undecodable;

pub(crate) use failure::message;
pub(crate) use handler::{Handler, defaulting, mutating, validating};
pub(crate) use reviewer::review;
