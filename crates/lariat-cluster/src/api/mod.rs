//! The wire: paths, parameters, bodies, answers and the two front doors.

pub(crate) mod admin;
pub(crate) mod arrival;
pub(crate) mod body;
pub(crate) mod discovery;
pub(crate) mod document;
mod endpoints;
mod etag;
mod gzip;
mod health;
mod list_options;
pub(crate) mod listener;
pub(crate) mod negotiate;
mod openapi;
pub(crate) mod query;
pub(crate) mod reply;
pub(crate) mod route;
#[cfg_attr(not(feature = "tls"), path = "secure_off.rs")]
pub(crate) mod secure;
pub(crate) mod service;
pub(crate) mod status;
pub(crate) mod yaml;
