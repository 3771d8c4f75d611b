//! The server: requests, deadlines, certificates, configurations, from start to stop.

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
