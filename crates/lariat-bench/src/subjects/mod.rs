//! Those who are measured: each reads all pods of a server and calls handlers.

mod kube_rs;
mod lariat;
mod latencies;
mod tally;

use std::any::Any;
use std::sync::Arc;

use anyhow::{Result, bail};

pub(crate) use kube_rs::client as kube_client;
pub(crate) use lariat::{Variant, pods as lariat_pods};
pub(crate) use tally::Tally;

/// Every subject of the benchmarks that read pods from a server; the first three are run by default.
pub(crate) const SUBJECTS: [&str; 13] = [
    "lariat",
    "kube-rs",
    "kube-rs-shared",
    "lariat-reflector",
    "kube-rs-reflector",
    "kube-rs-streaming",
    "lariat-content",
    "lariat-http1",
    "lariat-http2",
    "lariat-lists",
    "lariat-lists-plain",
    "lariat-plain",
    "lariat-one-thread",
];

/// As what handlers read pods.
pub(crate) const CASES: [&str; 4] = ["metadata", "typed", "dynamic", "mixed"];

/// As what handlers read pods whose changes are timed: typed, and they look at when the state was written.
pub(crate) const PROBES: &str = "probes";

/// What a subject is to do.
#[derive(Debug, Clone)]
pub(crate) struct Job<'a> {
    pub(crate) subject: &'a str,
    /// One of [`CASES`], or [`PROBES`].
    pub(crate) case: &'a str,
    pub(crate) url: &'a str,
    pub(crate) tally: Arc<Tally>,
}

/// A subject at work, until it is dropped.
pub(crate) struct Live {
    /// Returns the bytes the objects hold, where the subject counts them.
    pub(crate) bytes: Option<Box<dyn Fn() -> usize>>,
    /// Makes a reader of the cache; there has to be an object.
    pub(crate) reader: Box<dyn Fn() -> Reader>,
    _at_work: Box<dyn Any>,
}

/// Reads a cache, as fast as the cache lets it.
pub(crate) struct Reader {
    /// Gets one object after the other.
    pub(crate) get: Box<dyn FnMut() + Send>,
    /// Takes hold of all objects.
    pub(crate) list: Box<dyn FnMut() + Send>,
}

/// Starts a subject; its tally tells how far it is.
pub(crate) async fn start(job: &Job<'_>) -> Result<Live> {
    match job.subject {
        "lariat-reflector" => lariat::reflector(job).await,
        "kube-rs" | "kube-rs-streaming" => kube_rs::controllers(job),
        "kube-rs-shared" => kube_rs::shared(job),
        "kube-rs-reflector" => kube_rs::reflector(job),
        subject if subject.starts_with("lariat") => lariat::controller(job).await,
        other => bail!("no subject {other:?}; --help lists them"),
    }
}
