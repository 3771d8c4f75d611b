//! The API as HTTP: the listener, the service, authentication, responses, and paths without objects.

pub(crate) mod admin;
mod authenticate;
mod connection;
pub(crate) mod discovery;
mod endpoints;
mod etag;
mod health;
pub(crate) mod incoming;
pub(crate) mod listener;
mod objects;
mod openapi;
mod openid;
mod render;
#[cfg_attr(not(feature = "tls"), path = "secure_off.rs")]
pub(crate) mod secure;
pub(crate) mod service;
mod socket;
mod streams;
mod web_pages;
