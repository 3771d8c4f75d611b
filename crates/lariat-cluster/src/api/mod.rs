//! The wire: paths, parameters, bodies, answers and the two front doors.

pub(crate) mod body;
pub(crate) mod discovery;
pub(crate) mod listener;
pub(crate) mod negotiate;
pub(crate) mod query;
pub(crate) mod reply;
pub(crate) mod route;
pub(crate) mod service;
pub(crate) mod status;
