//! The permissions that an operator needs.
//!
//! `gather` derives [`Permission`]s from what is registered. `policy` turns them into RBAC rules, `manifests` into
//! roles and bindings, and `check` asks the API server for each of them before a start.

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
