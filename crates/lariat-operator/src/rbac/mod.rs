//! Permissions: what an operator needs to be allowed, gathered exactly, and checked before it starts.

mod check;
mod error;
mod gather;
mod manifests;
mod permission;
mod policy;

pub(crate) use check::check;
pub use error::AccessError;
pub(crate) use gather::{Gathered, Gathering};
pub use manifests::Manifests;
pub use permission::Permission;
pub(crate) use policy::rules;
