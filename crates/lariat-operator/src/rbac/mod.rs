//! The permissions an operator needs: gathers them, prints them, and checks them before a start.

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
