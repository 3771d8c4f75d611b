//! The options of controllers: workers, retries, timeouts, resyncs.
//!
//! Options are set in three places: for all kinds of a factory, for one kind, for one handler. What is not set for a
//! handler is taken from its kind, then from the factory.

use std::future::pending;
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use lariat::cache::KindOptions;
use lariat::controller::Resync;
use lariat::prelude::*;
use lariat::{FactoryBuilder, Registration};

use crate::{Paint, print_action};

#[cfg(test)]
mod tests;

/// The annotation that makes the handler fail (`fails`) or never end (`hangs`) for a pod.
pub const TROUBLE: &str = "lariat.dev/trouble";

/// The options of the controller.
#[derive(Debug, Clone, Copy)]
pub struct Config {
    /// The number of pods handled at a time.
    pub workers: usize,
    /// How many times a failed call is retried.
    pub retries: u32,
    /// The resync period.
    pub resync: Duration,
    /// The timeout of a call.
    pub timeout: Duration,
}

/// The original's numbers; it has no timeout.
impl Default for Config {
    fn default() -> Self {
        Self {
            workers: 1,
            retries: 5,
            resync: Duration::from_secs(45),
            timeout: Duration::from_secs(10),
        }
    }
}

impl Config {
    /// Sets a timeout for all handlers of all kinds, and the workers and the cache of one kind.
    pub fn configure(&self, builder: FactoryBuilder, pods: KindOptions) -> FactoryBuilder {
        let everybody = HandlerOptions::default().timeout(self.timeout);
        let pods = ControllerOptions::default()
            .workers(self.workers)
            .cache(pods);
        builder
            .default_options(ControllerOptions::default().handlers(everybody))
            .kind_options(Gvk::new("", "v1", "Pod"), pods)
    }

    /// Registers the handler, with its own options.
    ///
    /// # Errors
    ///
    /// Pods have such a handler already.
    pub fn register(&self, factory: &SharedControllerFactory) -> Result<Registration> {
        let options = HandlerOptions::default()
            .max_retries(self.retries)
            .resync(Resync::Every(self.resync));
        let pods = factory.for_object::<Pod>();
        Ok(pods.register_handler("log", options.handler(log))?)
    }
}

/// Prints a pod and the causes of the call.
async fn log(cx: Context<Pod>) -> HandlerResult {
    let name = cx.key().name();
    let Some(pod) = cx.object()? else {
        print_action("Pod", name, Paint::Dim, "is deleted");
        return Ok(Outcome::done());
    };
    let annotations = pod.metadata.annotations.as_ref();
    let trouble = annotations
        .and_then(|all| all.get(TROUBLE))
        .map(String::as_str);
    let reason = match cx.attempt() {
        1 => cx.causes().to_string(),
        again => format!("attempt {again}"),
    };
    match trouble {
        Some("fails") => {
            print_action("Pod", name, Paint::Red, format_args!("fails: {reason}"));
            Err("the pod says so".into())
        }
        Some("hangs") => {
            print_action("Pod", name, Paint::Red, format_args!("hangs: {reason}"));
            // Dropped by the timeout.
            pending().await
        }
        _ => {
            print_action("Pod", name, Paint::Green, format_args!("is fine: {reason}"));
            Ok(Outcome::done())
        }
    }
}
