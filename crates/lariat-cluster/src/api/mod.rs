//! The wire: paths, parameters, bodies, answers and the two front doors.

pub(crate) mod admin;
pub(crate) mod arrival;
pub(crate) mod body;
pub(crate) mod discovery;
mod gzip;
pub(crate) mod listener;
pub(crate) mod negotiate;
pub(crate) mod query;
pub(crate) mod reply;
pub(crate) mod route;
#[cfg_attr(not(feature = "tls"), path = "secure_off.rs")]
pub(crate) mod secure;
pub(crate) mod service;
pub(crate) mod status;
