//! A build without simulated workloads: no cluster has any.

/// The settings of simulated workloads, which there are not in this build.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Workloads {}

/// The server's state of simulated workloads: none.
#[derive(Debug)]
pub(crate) enum Simulated {}

impl Simulated {
    pub(crate) fn new(settings: Workloads) -> Self {
        match settings {}
    }
}
