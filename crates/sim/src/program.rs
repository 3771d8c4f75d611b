//! Programs of a simulation, and checks of their results.

use std::sync::Arc;

use futures::future::BoxFuture;
use lariat_cluster::Cluster;

use crate::process::Process;

/// The result of a program.
pub(crate) type Ending = Result<(), String>;

/// The function that a process runs, each time it starts.
pub(crate) type Program = Arc<dyn Fn(Process) -> BoxFuture<'static, Ending> + Send + Sync>;

/// A user's check of the cluster at rest.
pub(crate) type AtRest = Arc<dyn Fn(&Cluster) -> Ending + Send + Sync>;
