//! Users, and what they may do.
//!
//! Without any configuration every client may do everything. With tokens the cluster
//! identifies users; if it [requires authentication](crate::ClusterBuilder::require_authentication) it refuses
//! all others, and with [RBAC](crate::ClusterBuilder::rbac) it also evaluates the stored roles and bindings.

mod attributes;
mod claims;
mod escalation;
mod policy;
mod rbac;
#[cfg_attr(not(feature = "signatures"), path = "signer_off.rs")]
mod signer;
mod tokens;
mod user;
mod validity;

pub(crate) use attributes::{Attributes, Decision, Subject};
pub(crate) use claims::{Bound, Issue, Reference};
pub(crate) use escalation::missing;
pub(crate) use policy::{Access, Mode};
pub(crate) use signer::Signer;
pub(crate) use tokens::{AUDIENCE, TokenError, Tokens};
pub(crate) use user::MASTERS;
pub use user::User;
