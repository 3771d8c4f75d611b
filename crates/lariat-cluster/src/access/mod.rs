//! Users, and what they may do.
//!
//! Without any configuration every client may do everything. With tokens it knows who
//! asks; if it [requires authentication](crate::ClusterBuilder::require_authentication) it turns others
//! away, and with [RBAC](crate::ClusterBuilder::rbac) it also evaluates the stored roles and bindings.

mod attributes;
mod escalation;
mod policy;
mod rbac;
mod tokens;
mod user;

pub(crate) use attributes::{Attributes, Decision, Subject};
pub(crate) use escalation::missing;
pub(crate) use policy::{Access, Mode};
pub(crate) use tokens::{AUDIENCE, Issue, Tokens};
pub(crate) use user::MASTERS;
pub use user::User;
