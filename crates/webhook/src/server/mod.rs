//! The server: requests, deadlines, certificates and configurations, from start to stop.
//!
//! `handle` starts the tasks: the HTTP server with its `routes`, the keeper of the certificates, and the `installer` of
//! the configurations. `budget` bounds the memory of bodies, `respond` encodes answers, and `health` is the result of
//! `/readyz`, with the alerts of all tasks beside it.

mod budget;
mod handle;
mod health;
mod installer;
mod respond;
mod routes;

pub use handle::WebhookServer;
pub use health::WebhookHealth;

pub(crate) use handle::{Start, start};
pub(crate) use installer::Installer;
pub(crate) use routes::{Limits, Routes, Target};
