//! A build without simulated workloads: no controller of them runs.

use super::plane::{Controller, Plane};
use crate::store::Change;
use crate::workloads::Simulated;

/// The controller of simulated workloads, which does not exist.
pub(crate) enum Simulation {}

impl Simulation {
    pub(crate) fn new(simulated: &Simulated) -> Self {
        match *simulated {}
    }
}

impl Controller for Simulation {
    fn observe(&mut self, _: &Plane, _: &Change) {
        match *self {}
    }

    fn work(&mut self, _: &Plane) -> bool {
        match *self {}
    }
}
