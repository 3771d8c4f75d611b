//! Programs of a simulation, and checks of their results.

use std::sync::Arc;

use futures::future::BoxFuture;
use lariat_cluster::Cluster;

use crate::process::Process;

/// How a program ends.
pub(crate) type Ending = Result<(), String>;

/// What a process runs, each time it starts.
pub(crate) type Program = Arc<dyn Fn(Process) -> BoxFuture<'static, Ending> + Send + Sync>;

/// What a user's check gets to see, and says.
pub(crate) type AtRest = Arc<dyn Fn(&Cluster) -> Ending + Send + Sync>;
