//! Prometheus metrics of factories.
//!
//! A [`Collector`] in a registry of [`prometheus_client`] reads the [`status`](SharedControllerFactory::status) of its
//! factories whenever the registry is encoded. Between scrapes it costs nothing.
//!
//! ```no_run
//! use lariat::controller::{
//!     metrics::prometheus_client::encoding::text, metrics::prometheus_client::registry::Registry,
//! };
//! use lariat::SharedControllerFactory;
//!
//! # fn example(
//! #     factory: &SharedControllerFactory,
//! #     downstream: &SharedControllerFactory,
//! # ) -> Result<(), std::fmt::Error> {
//! let mut registry = Registry::default();
//! let collector = lariat::controller::metrics::register(&mut registry, factory);
//! // With several factories, each has a context id.
//! collector.add("downstream", downstream);
//!
//! // Serve it as `application/openmetrics-text; version=1.0.0; charset=utf-8`.
//! let mut body = String::new();
//! text::encode(&mut body, &registry)?;
//! # Ok(()) }
//! ```
//!
//! # Series
//!
//! `docs/metrics.md` in the repository lists every series with its labels; it is compared with a scrape by a test.
//!
//! | names | as in | of each |
//! |---|---|---|
//! | `workqueue_*` | client-go | kind with handlers |
//! | `controller_runtime_*` | controller-runtime | kind with handlers |
//! | `lasso_controller_*` | lasso | handler, cache |
//! | `lariat_handler_*`, `lariat_blocked_threads`, `lariat_hot_loops` | | handler, kind with handlers |
//! | `lariat_cache_*`, `lariat_reflector_*` | | cache |
//! | `rest_client_*` | client-go | factory |
//! | `leader_election_*` | client-go | factory with a leader election |
//! | `lariat_lease_*`, `lariat_shard_*` | | factory with a leader election or a ring, with a ring |
//!
//! Every series has the label `ctx`, the context id of its factory. Label values are names that the program registers
//! (contexts, kinds, handlers, leases) and words from short lists; never keys or namespaces. So the program bounds the
//! number of series: about ninety per kind, and ninety per handler of a kind, most of them buckets. (A handler of
//! [all kinds](SharedControllerFactory::for_all_kinds) counts once per served kind.)
//!
//! A series ends when its handler is deregistered, its kind has no handlers any more, or its cache or factory is
//! dropped.

mod caches;
mod collector;
mod controllers;
mod handlers;
mod histogram;
mod lasso;
mod leases;
mod output;
mod queues;
mod requests;
mod scrape;

use prometheus_client::registry::Registry;

pub use collector::Collector;
/// The crate of the registry, re-exported.
pub use prometheus_client;

use crate::SharedControllerFactory;

/// Registers a collector for a factory, under the empty context id.
///
/// More factories can be [added](Collector::add) to the returned collector. A prefix of the registry is added to the
/// names, and its labels to the series. Register at most one collector per registry: with two, every family would be
/// written twice, which is invalid.
#[allow(
    clippy::must_use_candidate,
    reason = "the registry has the collector; another handle is for those with more factories"
)]
pub fn register(registry: &mut Registry, factory: &SharedControllerFactory) -> Collector {
    let collector = Collector::new();
    collector.add("", factory);
    registry.register_collector(Box::new(collector.clone()));
    collector
}
