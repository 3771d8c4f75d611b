//! The objects of a new cluster, as a real server creates them when it starts.
//!
//! The objects are encoded once for all clusters of the process; each gets copies with uids and times of its own.

mod api_services;
mod kubernetes;
mod objects;
mod roles;

use std::net::SocketAddr;

use crate::access::Mode;
use crate::server::Server;

pub(crate) use api_services::{api_service, groups_by_priority, is_built_in};
pub(crate) use kubernetes::{origin, reached};

/// Creates the objects that are missing.
///
/// A cluster that continues from a data file has most of them already; what was deleted comes back, as on a real
/// server. `address` is where the server listens, if it does.
///
/// Roles and flow schemas are most of all objects. A cluster that neither listens nor evaluates roles is that of a
/// test, which would wait for them and does not look at them, so it has none.
pub(crate) fn create_objects(server: &Server, address: Option<SocketAddr>) {
    let is_looked_at = address.is_some() || server.access.mode == Mode::Rbac;
    objects::create(server, is_looked_at);
    kubernetes::create(server, address);
}
