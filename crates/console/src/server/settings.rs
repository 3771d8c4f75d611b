//! The settings of a console, and the trait of a log filter.

use std::sync::Arc;

use lariat_controller::metrics::prometheus_client::registry::Registry;
use lariat_http::Hosts;

use crate::access::Access;
use crate::health::{HealthCheck, Limits};
use crate::members::Members;

/// The default number of bytes of changed objects that a factory keeps.
const CHANGES: usize = 4 << 20;

/// Adds metrics of the program to a registry.
pub(super) type Metrics = dyn Fn(&mut Registry) + Send + Sync;

/// The settings of a console, except its address.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) members: Members,
    /// The name of the program.
    pub(super) name: Option<String>,
    pub(super) version: Option<String>,
    pub(super) access: Access,
    /// The names of the console, for requests without authentication.
    pub(super) hosts: Hosts,
    pub(super) open_metrics: bool,
    pub(super) actions: bool,
    pub(super) limits: Limits,
    pub(super) checks: Vec<HealthCheck>,
    pub(super) metrics: Vec<Arc<Metrics>>,
    pub(super) log_filter: Option<Arc<dyn LogFilter>>,
    /// How many bytes of changed objects a factory keeps.
    pub(super) changes: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            members: Members::default(),
            name: None,
            version: None,
            access: Access::default(),
            hosts: Hosts::default(),
            open_metrics: false,
            actions: false,
            limits: Limits::default(),
            checks: Vec::new(),
            metrics: Vec::new(),
            log_filter: None,
            changes: CHANGES,
        }
    }
}

/// The filter of a program's log, for a console that shows and changes it.
///
/// The `LogFilter` of the module `logging` implements it. Implement it for a program with another subscriber.
///
/// ```
/// use std::sync::Mutex;
/// use lariat::console::LogFilter;
///
/// struct Level(Mutex<String>);
///
/// impl LogFilter for Level {
///     fn filter(&self) -> String {
///         self.0.lock().unwrap().clone()
///     }
///
///     fn set_filter(&self, filter: &str) -> Result<(), String> {
///         if !["info", "debug"].contains(&filter) {
///             return Err(format!("{filter} is neither info nor debug"));
///         }
///         *self.0.lock().unwrap() = filter.to_owned();
///         Ok(())
///     }
/// }
///
/// let level = Level(Mutex::new("info".to_owned()));
/// assert!(level.set_filter("loud").is_err());
/// assert_eq!(level.filter(), "info");
/// ```
pub trait LogFilter: Send + Sync {
    /// Returns the present filter, such as `info,lariat_cache=debug`.
    fn filter(&self) -> String;

    /// Replaces the filter.
    ///
    /// # Errors
    ///
    /// The text is not a filter. The error is the reason, which the console shows.
    fn set_filter(&self, filter: &str) -> Result<(), String>;
}
