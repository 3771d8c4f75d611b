//! Those who are measured: each reads all pods of a server and calls handlers.

mod floor;
mod kube_rs;
mod lariat;
mod latencies;
mod seen;
mod tally;

use std::any::Any;
use std::sync::Arc;

use anyhow::{Result, bail};

pub(crate) use kube_rs::client as kube_client;
pub(crate) use lariat::{Variant, pods as lariat_pods};
pub(crate) use tally::Tally;

use crate::target::Target;

/// Subjects of the benchmarks that read pods from a server and call handlers.
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

/// Those, and the floor beneath them.
pub(crate) const WITH_FLOOR: [&str; 19] = [
    "lariat",
    "kube-rs",
    "kube-rs-shared",
    "floor",
    "floor-scan",
    "floor-lists",
    "floor-http1",
    "floor-http2",
    "floor-one-thread",
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

/// What a subject is to do.
#[derive(Debug, Clone)]
pub(crate) struct Job<'a> {
    pub(crate) subject: &'a str,
    /// One of [`CASES`].
    pub(crate) case: &'a str,
    /// Whether handlers look at when a state was written, rather than at its version.
    pub(crate) is_stamped: bool,
    pub(crate) target: &'a Target,
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

/// Returns whether a subject reads bytes and calls no handlers.
pub(crate) fn is_floor(subject: &str) -> bool {
    subject.starts_with("floor")
}

/// Starts a subject; its tally tells how far it is.
pub(crate) async fn start(job: &Job<'_>) -> Result<Live> {
    match job.subject {
        "lariat-reflector" => lariat::reflector(job).await,
        "kube-rs" | "kube-rs-streaming" => kube_rs::controllers(job).await,
        "kube-rs-shared" => kube_rs::shared(job).await,
        "kube-rs-reflector" => kube_rs::reflector(job).await,
        subject if is_floor(subject) => floor::start(job).await,
        subject if subject.starts_with("lariat") => lariat::controller(job).await,
        other => bail!("no subject {other:?}; --help lists them"),
    }
}
