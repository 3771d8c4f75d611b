//! Admission and conversion webhooks, served by a program next to its controllers.
//!
//! ```text
//! API server ──AdmissionReview──▶ WebhookServer ──Admission<K>──▶ a handler, which can read the shared caches
//!            ◀─decision, patch───                ◀─Decision, Mutation<K>
//! ```
//!
//! [`Webhooks`] collects handlers for [`Hook`]s and serves them over TLS, with [`Certificates`] from files, or
//! generated and rotated in a Secret. With an [`Endpoint`], where API servers call the webhooks, the configurations are
//! applied once the webhooks are served, and kept up to date. A [`Conversion`] converts between the versions of a
//! custom resource, and a [`StorageMigration`] rewrites objects that are stored in an old version. A [`Policy`] has
//! rules in CEL, which API servers evaluate without a call.
//!
//! | feature | adds |
//! |---|---|
//! | `metrics` | `Webhooks::metrics`: requests, latencies, requests in flight and alerts, for Prometheus |

mod webhooks;

mod server;

mod configuration;
mod migration;
mod policy;

mod certificates;
mod endpoint;

mod conversion;
mod hook;
mod rules;

mod admission;

mod alerts;
mod deadline;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(not(feature = "metrics"))]
#[path = "metrics_off.rs"]
mod metrics;
mod patch;
mod wire;

mod error;

pub use admission::{
    Admission, Decision, Mutation, Operation, ReviewError, ReviewResult, Undecodable,
};
pub use alerts::WebhookAlert;
pub use certificates::{CertificateError, Certificates};
pub use configuration::Configurations;
pub use conversion::{Conversion, ConversionError};
pub use endpoint::Endpoint;
pub use error::WebhookError;
pub use hook::{FailurePolicy, Hook, MatchPolicy, SideEffects};
#[cfg(feature = "metrics")]
pub use metrics::WebhookMetrics;
pub use migration::{MigrationError, MigrationReport, StorageMigration};
pub use policy::{Policy, PolicyAction};
/// The crate of the metrics registry.
#[cfg(feature = "metrics")]
pub use prometheus_client;
pub use server::{WebhookHealth, WebhookServer};
pub use webhooks::Webhooks;
