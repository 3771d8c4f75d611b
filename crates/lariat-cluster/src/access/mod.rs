//! Who asks, and what they may do.
//!
//! Without any configuration whoever reaches the cluster may do everything. With tokens it knows who
//! asks; if it [requires authentication](crate::ClusterBuilder::require_authentication) it turns others
//! away, and with [RBAC](crate::ClusterBuilder::rbac) it also evaluates the stored roles and bindings.

mod attributes;
mod authenticate;
mod bootstrap;
mod pages;
mod policy;
mod rbac;
mod tokens;
mod user;

pub(crate) use attributes::{Attributes, Subject};
pub(crate) use authenticate::{admit, check_also};
pub(crate) use bootstrap::create_roles;
pub(crate) use policy::{Decision, decide, rules};
pub(crate) use tokens::{AUDIENCE, Issue, Tokens, issue, look_up};
pub use user::User;

/// What decides whether a request is carried out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mode {
    /// Whoever reaches the cluster may do everything.
    #[default]
    Open,
    /// Whoever says who they are may do everything, and others only ask how the server is.
    Authenticated,
    /// What the stored roles and bindings allow.
    Rbac,
}

/// How a cluster decides about requests.
#[derive(Debug, Default)]
pub(crate) struct Access {
    pub(crate) mode: Mode,
    /// It listens on a loopback address.
    pub(crate) is_local: bool,
    pub(crate) tokens: Tokens,
}
