//! Metrics of guards.

use std::collections::BTreeMap;
use std::fmt;

use lariat_controller::metrics::prometheus_client::collector::Collector;
use lariat_controller::metrics::prometheus_client::encoding::DescriptorEncoder;
use lariat_controller::metrics::prometheus_client::metrics::MetricType;
use lariat_operator::{GuardState, Trip};

use crate::members::Members;

/// Collects the states of the guards of all operators, for a registry.
pub(super) struct GuardMetrics(Members);

impl GuardMetrics {
    pub(super) fn new(members: &Members) -> Self {
        Self(members.clone())
    }

    /// Returns the states by operator and reconciler.
    ///
    /// A guard that several reconcilers share has a state for each.
    fn states(&self) -> BTreeMap<(String, String), GuardState> {
        let mut states = BTreeMap::new();
        for (_, operator) in self.0.operators() {
            for (guard, reconcilers) in operator.guards() {
                for reconciler in reconcilers {
                    let name = (operator.name().to_owned(), reconciler);
                    let state = guard.state();
                    // Two series with the same labels would be invalid. A guard that has tripped takes precedence.
                    if state.is_tripped() || !states.contains_key(&name) {
                        states.insert(name, state);
                    }
                }
            }
        }
        states
    }
}

impl Collector for GuardMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let states = self.states();
        // A program without guards has no such families.
        if states.is_empty() {
            return Ok(());
        }
        let mut write = |name: &str, help: &str, value: fn(&GuardState) -> u64| {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for ((operator, reconciler), state) in &states {
                let labels = [("operator", &**operator), ("reconciler", &**reconciler)];
                let mut series = family.encode_family(&labels)?;
                series.encode_gauge(&value(state))?;
            }
            Ok(())
        };
        write(
            "lariat_guard_tripped",
            "Whether the guard has tripped and refuses writes.",
            |state| u64::from(state.is_tripped()),
        )?;
        write(
            "lariat_guard_refused_writes",
            "Writes that were refused since the guard tripped.",
            |state| state.trip().map_or(0, Trip::refused),
        )
    }
}

impl fmt::Debug for GuardMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardMetrics").finish_non_exhaustive()
    }
}
