//! How a controller is run: workers, retries, timeouts, resyncs.
//!
//! What can be chosen has three places: all kinds of a factory, one kind, one handler. What is not said for a handler is
//! as its kind says, then as the factory says.

use std::future::pending;
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use lariat::prelude::*;
use lariat::{FactoryBuilder, Registration, Resync, cache::KindOptions};

use crate::{Paint, tell};

#[cfg(test)]
mod tests;

/// The annotation that makes the handler fail (`fails`) or never end (`hangs`) for a pod.
pub const TROUBLE: &str = "lariat.dev/trouble";

/// How pods are handled.
#[derive(Debug, Clone, Copy)]
pub struct Config {
    /// How many pods are handled at a time.
    pub workers: usize,
    /// How many times a failed call is tried again.
    pub retries: u32,
    /// How often every pod is handled although nothing happened.
    pub resync: Duration,
    /// How long a call may take.
    pub timeout: Duration,
}

/// The original's numbers; it knows no timeout.
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
    /// Tells a factory: a timeout for all handlers of all kinds, and the workers of one kind, with the way it is cached.
    pub fn configure(&self, builder: FactoryBuilder, pods: KindOptions) -> FactoryBuilder {
        let everybody = HandlerOptions::default().timeout(self.timeout);
        let pods = ControllerOptions::default()
            .workers(self.workers)
            .cache(pods);
        builder
            .default_options(ControllerOptions::default().handlers(everybody))
            .kind_options(Gvk::new("", "v1", "Pod"), pods)
    }

    /// Registers the handler, with what is for it alone.
    ///
    /// # Errors
    ///
    /// Pods have such a handler already.
    pub fn register(&self, factory: &SharedControllerFactory) -> Result<Registration> {
        let options = HandlerOptions::default()
            .max_retries(self.retries)
            .resync(Resync::Every(self.resync));
        let pods = factory.for_object::<Pod>();
        Ok(pods.register_handler_with("log", options, log)?)
    }
}

/// Tells of a pod, and why.
async fn log(cx: Context<Pod>) -> HandlerResult {
    let name = cx.key().name();
    let Some(pod) = cx.object()? else {
        tell("Pod", name, Paint::Dim, "is gone");
        return Ok(Outcome::done());
    };
    let annotations = pod.metadata.annotations.as_ref();
    let trouble = annotations
        .and_then(|all| all.get(TROUBLE))
        .map(String::as_str);
    let why = match cx.attempt() {
        1 => cx.causes().to_string(),
        again => format!("attempt {again}"),
    };
    match trouble {
        Some("fails") => {
            tell("Pod", name, Paint::Red, format_args!("fails: {why}"));
            Err("the pod says so".into())
        }
        Some("hangs") => {
            tell("Pod", name, Paint::Red, format_args!("hangs: {why}"));
            // Dropped when the time is over.
            pending().await
        }
        _ => {
            tell("Pod", name, Paint::Green, format_args!("is fine: {why}"));
            Ok(Outcome::done())
        }
    }
}
