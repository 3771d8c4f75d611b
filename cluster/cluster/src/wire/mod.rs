//! The wire format: paths, parameters, bodies and answers.

pub(crate) mod body;
pub(crate) mod delivery;
pub(crate) mod document;
pub(crate) mod gzip;
mod list_options;
pub(crate) mod negotiate;
pub(crate) mod number;
#[cfg_attr(not(feature = "protobuf"), path = "protobuf_off.rs")]
pub(crate) mod protobuf;
pub(crate) mod query;
pub(crate) mod reply;
pub(crate) mod route;
pub(crate) mod surrogates;
pub(crate) mod timeout;
pub(crate) mod verb;
pub(crate) mod write_options;
