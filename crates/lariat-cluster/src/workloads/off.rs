//! A build without simulated workloads: no cluster has any.

/// How workloads are simulated: never.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Workloads {}

/// What the server keeps of them: nothing.
#[derive(Debug)]
pub(crate) enum Simulated {}

impl Simulated {
    pub(crate) fn new(settings: Workloads) -> Self {
        match settings {}
    }
}
