//! The figures of factories, for Prometheus.
//!
//! A [`Collector`] in a registry of [`prometheus_client`] asks its factories for their
//! [`status`](SharedControllerFactory::status) whenever the registry is encoded. Between scrapes it costs
//! nothing: nothing is counted for it that is not counted anyway.
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
//! // Of several factories, each has a context id.
//! collector.add("downstream", downstream);
//!
//! // To be served as `application/openmetrics-text; version=1.0.0; charset=utf-8`.
//! let mut body = String::new();
//! text::encode(&mut body, &registry)?;
//! # Ok(()) }
//! ```
//!
//! # Series
//!
//! Every series has the label `ctx`, the context id of its factory. `kind`, `name`, `controller` and
//! `controller_name` all are a kind as text, such as `apps/v1 Deployment`, but for a `kind` beside `group` and
//! `version`. Values of labels are what a program registers: contexts, kinds, handlers, and words from short lists;
//! never keys or namespaces. So the number of series is bounded by the program, at about ninety for a kind and ninety
//! for a handler of a kind, most of which are buckets. (A handler of
//! [all kinds](SharedControllerFactory::for_all_kinds) has as many as the API server serves.) Series end
//! with what they are about: a handler that is deregistered, a kind that nobody handles, a cache that is given up, a factory that is dropped.
//!
//! For each kind that is handled, as client-go counts (`ctx`, `name`, `controller`):
//!
//! | name | and as labels | is |
//! |---|---|---|
//! | `workqueue_depth` | `priority` | keys that are due and with no worker: in line, or with a worker and due again |
//! | `workqueue_adds_total` | | times a key became due; adds that merged are one |
//! | `workqueue_queue_duration_seconds` | | how long keys were due before a worker had them |
//! | `workqueue_work_duration_seconds` | | how long workers had them |
//! | `workqueue_unfinished_work_seconds` | | how long workers have had the keys they have, together |
//! | `workqueue_longest_running_processor_seconds` | | how long the slowest of them has |
//! | `workqueue_retries_total` | | failures of handlers after which another attempt was scheduled |
//!
//! For each kind that is handled, as controller-runtime counts (`ctx`, `controller`). A reconcile is a call of a
//! handler; calls of handlers that are gone stay in the sums:
//!
//! | name | and as labels | is |
//! |---|---|---|
//! | `controller_runtime_reconcile_total` | `result` | calls that ended as `success`, `error`, `requeue` (at once) or `requeue_after` |
//! | `controller_runtime_reconcile_errors_total` | | of these, all that failed |
//! | `controller_runtime_terminal_reconcile_errors_total` | | those with an error that is not worth another try |
//! | `controller_runtime_reconcile_panics_total` | | those that panicked |
//! | `controller_runtime_reconcile_timeouts_total` | | those that took longer than allowed |
//! | `controller_runtime_reconcile_time_seconds` | | how long calls took |
//! | `controller_runtime_max_concurrent_reconciles` | | workers; zero while the controller does not run |
//! | `controller_runtime_active_workers` | | workers that have a key |
//!
//! For each handler, as lasso counts (`ctx`, `controller_name`, `handler_name`, `has_error`), and for each cache
//! (`ctx`, `group`, `version`, `kind`):
//!
//! | name | is |
//! |---|---|
//! | `lasso_controller_total_handler_execution` | calls |
//! | `lasso_controller_reconcile_time_seconds` | how long calls took |
//! | `lasso_controller_total_cached_object` | objects that are cached |
//!
//! The first is a counter, and is exposed as a gauge: the name of a counter would have to end in `_total`.
//!
//! For each handler (`ctx`, `kind`, `handler`), kind (`ctx`, `kind`) and cache (`ctx`, `kind`), what Lariat alone
//! knows:
//!
//! | name | and as labels | is |
//! |---|---|---|
//! | `lariat_handler_runs_total` | `result` | calls, by how they [ended](crate::Ended::as_str) |
//! | `lariat_handler_time_seconds` | | how long they took |
//! | `lariat_handler_lag_seconds` | | how long it took from a change to the call for it |
//! | `lariat_handler_retries_total` | | calls that came after a failure |
//! | `lariat_handler_given_up_total` | | failures after which the retries were used up |
//! | `lariat_hot_loops` | | keys that are in hot loops; see [`Sentinel`](crate::Sentinel) |
//! | `lariat_cache_objects` | | objects that are cached |
//! | `lariat_cache_bytes` | | bytes they hold |
//! | `lariat_cache_decodes_total` | | values that had to be decoded from them; shared ones cost none |
//! | `lariat_cache_lists_total` | | times everything there is was read, by a list or the beginning of a watch |
//! | `lariat_reflector_lists_total` | | lists begun |
//! | `lariat_reflector_watches_total` | | watches opened |
//! | `lariat_reflector_reconnects_total` | `reason` | requests that followed others, by what [ended](lariat_cache::Reconnect) these |
//! | `lariat_reflector_last_event_age_seconds` | | how long ago the API server said anything; absent before |
//! | `lariat_reflector_synced` | | 1 if the cache is filled and watched, else 0 |
//! | `lariat_reflector_unreadable_total` | | objects and events that could not be read |
//!
//! A cache is there as soon as somebody uses a kind, with or without a handler, and for some time after. A kind whose
//! namespaces have a reflector each is notified of as one.
//!
//! Buckets of histograms are 1 µs, 4 µs, 16 µs and so on to 1,074 s.

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
/// The crate of the registry.
pub use prometheus_client;

use crate::SharedControllerFactory;

/// Registers a collector for a factory, under the empty context id; more factories can be
/// [added](Collector::add) to what is returned.
///
/// The names are as listed only in a registry without a prefix; labels of a registry are added. A registry has
/// one collector: with two, every family would be written twice, which is not valid.
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
