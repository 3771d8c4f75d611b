//! Admission and conversion webhooks on the factory of a program's controllers.
//!
//! ```text
//! API server ──AdmissionReview──▶ WebhookServer ──Admission<K>──▶ a handler, which reads the shared caches
//!            ◀─verdict, patch───                ◀─Verdict, Mutation<K>
//! ```
//!
//! [`Webhooks`] has the handlers and is served over TLS, with [`Certificates`] from files or made and rotated by the
//! program. [`Reach`] says where API servers call them; then the configurations are applied at the start. A
//! [`Conversion`] converts the versions of a custom resource through one of them; [`StorageMigration`] rewrites what is
//! stored in an old one. A [`Policy`] has rules in CEL, which API servers evaluate by themselves.
//!
//! | feature | adds |
//! |---|---|
//! | `metrics` | `Webhooks::metrics`: requests, latencies and requests in flight for Prometheus |

mod webhooks;

mod server;

mod configuration;
mod migration;
mod policy;

mod certificates;
mod reach;

mod conversion;
mod hook;
mod rules;

mod admission;

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
    Admission, Mutation, Operation, ReviewError, ReviewResult, Undecodable, Verdict,
};
pub use certificates::{CertificateError, Certificates};
pub use configuration::Configurations;
pub use conversion::{Conversion, ConversionError};
pub use error::WebhookError;
pub use hook::{FailurePolicy, Hook, MatchPolicy, SideEffects};
#[cfg(feature = "metrics")]
pub use metrics::WebhookMetrics;
pub use migration::{MigrationError, MigrationReport, StorageMigration};
pub use policy::{Policy, PolicyAction};
/// The crate of the registry, re-exported.
#[cfg(feature = "metrics")]
pub use prometheus_client;
pub use reach::Reach;
pub use server::{WebhookHealth, WebhookServer};
pub use webhooks::Webhooks;
