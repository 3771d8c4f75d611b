//! Prometheus metrics of factories.
//!
//! A [`Collector`], registered in a registry of [`prometheus_client`], reads the
//! [`status`](SharedControllerFactory::status) of its factories whenever the registry is encoded. Between scrapes it
//! costs nothing.
//!
//! ```no_run
//! use lariat_controller::SharedControllerFactory;
//! use lariat_controller::metrics::prometheus_client::encoding::text;
//! use lariat_controller::metrics::prometheus_client::registry::Registry;
//!
//! # fn example(
//! #     factory: &SharedControllerFactory,
//! #     downstream: &SharedControllerFactory,
//! # ) -> Result<(), std::fmt::Error> {
//! let mut registry = Registry::default();
//! let collector = lariat_controller::metrics::register(&mut registry, factory);
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
//! Every series has the label `ctx`, the context id of its factory. `kind`, `name`, `controller` and `controller_name`
//! are all the kind as text, such as `apps/v1 Deployment`, except a `kind` beside `group` and `version`. Label values
//! are what the program registers: contexts, kinds, handlers, and words from short lists; never keys or namespaces. So
//! the program bounds the number of series, at about ninety per kind and ninety per handler of a kind, most of them
//! buckets. (A handler of [all kinds](SharedControllerFactory::for_all_kinds) counts once per served kind.) A series
//! ends when its subject does: a handler that is deregistered, a kind without handlers, a cache that is dropped, a
//! factory that is dropped.
//!
//! For each kind with handlers, as in client-go (`ctx`, `name`, `controller`):
//!
//! | name | more labels | meaning |
//! |---|---|---|
//! | `workqueue_depth` | `priority` | keys that are due: queued, or due again while being processed |
//! | `workqueue_adds_total` | | times a key became due; adds that merged are one |
//! | `workqueue_queue_duration_seconds` | | how long keys were queued |
//! | `workqueue_work_duration_seconds` | | how long keys were being processed |
//! | `workqueue_unfinished_work_seconds` | | how long the present keys have been processed, summed up |
//! | `workqueue_longest_running_processor_seconds` | | how long the slowest of them has been processed |
//! | `workqueue_retries_total` | | failures of handlers after which a retry was scheduled |
//!
//! For each kind with handlers, as in controller-runtime (`ctx`, `controller`). A reconcile is a call of a handler;
//! calls of removed handlers stay in the sums:
//!
//! | name | more labels | meaning |
//! |---|---|---|
//! | `controller_runtime_reconcile_total` | `result` | calls that ended as `success`, `error`, `requeue` (immediate) or `requeue_after` |
//! | `controller_runtime_reconcile_errors_total` | | calls that failed |
//! | `controller_runtime_terminal_reconcile_errors_total` | | calls that failed with a terminal error |
//! | `controller_runtime_reconcile_panics_total` | | calls that panicked |
//! | `controller_runtime_reconcile_timeouts_total` | | calls that timed out |
//! | `controller_runtime_reconcile_time_seconds` | | duration of calls |
//! | `controller_runtime_max_concurrent_reconciles` | | workers; zero while the controller does not run |
//! | `controller_runtime_active_workers` | | workers that are processing a key |
//!
//! For each handler, as in lasso (`ctx`, `controller_name`, `handler_name`, `has_error`), and for each cache (`ctx`,
//! `group`, `version`, `kind`):
//!
//! | name | meaning |
//! |---|---|
//! | `lasso_controller_total_handler_execution` | calls |
//! | `lasso_controller_reconcile_time_seconds` | duration of calls |
//! | `lasso_controller_total_cached_object` | objects in the cache |
//!
//! The first is a counter exposed as a gauge, because the name of a counter must end in `_total`.
//!
//! Lariat's own, for each handler (`ctx`, `kind`, `handler`), kind (`ctx`, `kind`) and cache (`ctx`, `kind`):
//!
//! | name | more labels | meaning |
//! |---|---|---|
//! | `lariat_handler_runs_total` | `result` | calls, by how they [ended](crate::Ended::as_str) |
//! | `lariat_handler_time_seconds` | | duration of calls |
//! | `lariat_handler_lag_seconds` | | time from a change to the call for it |
//! | `lariat_handler_retries_total` | | calls that were retries |
//! | `lariat_handler_exhausted_total` | | failures after which the retries were exhausted |
//! | `lariat_hot_loops` | | keys in a hot loop; see [`Sentinel`](crate::Sentinel) |
//! | `lariat_cache_objects` | | objects in the cache |
//! | `lariat_cache_bytes` | | bytes of the cached objects |
//! | `lariat_cache_decodes_total` | | objects decoded from the cache; shared values are decoded once |
//! | `lariat_cache_lists_total` | | complete reads of the kind, by a list or a watch list |
//! | `lariat_reflector_lists_total` | | lists started |
//! | `lariat_reflector_watches_total` | | watches opened |
//! | `lariat_reflector_reconnects_total` | `reason` | requests that followed another one, by the [reason](lariat_cache::Reconnect) why that one ended |
//! | `lariat_reflector_last_event_age_seconds` | | time since the API server last sent anything; absent before |
//! | `lariat_reflector_synced` | | 1 if the cache is synced, else 0 |
//! | `lariat_reflector_unreadable_total` | | objects and events that could not be read |
//!
//! A kind has a cache while it is used, with or without a handler, and for some time afterwards. A kind with one
//! reflector per namespace is reported as one.
//!
//! The histogram buckets are 1 µs, 4 µs, 16 µs and so on up to 1,074 s.

mod caches;
mod collector;
mod controllers;
mod handlers;
mod histogram;
mod lasso;
mod output;
mod queues;
mod scrape;

use prometheus_client::registry::Registry;

pub use collector::Collector;
/// The crate of the registry, re-exported.
pub use prometheus_client;

use crate::SharedControllerFactory;

/// Registers a collector for a factory, under the empty context id.
///
/// More factories can be [added](Collector::add) to the returned collector.
///
/// The names are as listed only if the registry has no prefix; labels of the registry are added. Register at most one
/// collector per registry: with two, every family would be written twice, which is invalid.
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
