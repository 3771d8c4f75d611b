//! Access: which objects of a kind a user may see, and reviews that determine it.

mod access;
mod answers;
#[cfg(test)]
mod answers_tests;
mod ask;
mod budget;
mod error;
mod review;
mod rules;
mod verb;

pub use access::Access;
pub use error::AccessError;
pub use lariat_http::User;
pub use review::AccessReviews;
pub use verb::Verb;
