//! A build without simulated workloads: no controller of them runs.

use super::controller::Controller;
use crate::workloads::Simulated;

/// Creates the controller of simulated workloads, of which there are none.
pub(super) fn controller(simulated: &Simulated) -> Box<dyn Controller> {
    match *simulated {}
}
