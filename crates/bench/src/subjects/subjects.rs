//! What is compared.

use anyhow::{Result, bail};

use super::job::{Job, Live};
use super::{floor, kube_rs, lariat};

/// Subjects of the benchmarks that read pods from a server and call handlers.
pub(crate) const SUBJECTS: [&str; 14] = [
    "lariat",
    "kube-rs",
    "kube-rs-shared",
    "lariat-reflector",
    "kube-rs-reflector",
    "kube-rs-streaming",
    "lariat-console",
    "lariat-content",
    "lariat-http1",
    "lariat-http2",
    "lariat-lists",
    "lariat-lists-plain",
    "lariat-plain",
    "lariat-one-thread",
];

/// Those, and the floor beneath them.
pub(crate) const WITH_FLOOR: [&str; 20] = [
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
    "lariat-console",
    "lariat-content",
    "lariat-http1",
    "lariat-http2",
    "lariat-lists",
    "lariat-lists-plain",
    "lariat-plain",
    "lariat-one-thread",
];

/// The types as which handlers read pods.
pub(crate) const CASES: [&str; 4] = ["metadata", "typed", "dynamic", "mixed"];

/// Returns whether a subject reads bytes and calls no handlers.
pub(crate) fn is_floor(subject: &str) -> bool {
    subject.starts_with("floor")
}

/// Starts a subject; its tally says how far it is.
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
