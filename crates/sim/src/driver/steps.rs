//! Execution of the steps of a plan.

use std::sync::Arc;
use std::time::Duration;

use super::Driver;
use super::driver::BUSY;
use crate::event::Event;
use crate::host::Host;
use crate::network::LinkState;
use crate::observer::MetFault;
use crate::plan::{Fault, FaultKind, PlanStep, ProcessFault, StepAction};

impl Driver<'_> {
    /// Shows a fault and one process, or each, to the observer.
    pub(super) fn met(&self, fault: MetFault, process: Option<usize>) {
        for (at, host) in self.processes.iter().enumerate() {
            if process.is_none_or(|only| only == at)
                && let Some(live) = host.live()
            {
                self.recorder.show(|observer| observer.met(fault, &live));
            }
        }
    }

    pub(super) fn execute(&mut self, step: &PlanStep) {
        // A step in a quiet time must not wait for the end of a long turn to have its effect.
        self.turn = BUSY;
        self.recorder
            .say(format!("plan: {}", self.names.show(step)));
        match &step.what {
            StepAction::Write(write) => self.world.write(write),
            StepAction::Fault(fault) => self.fault(fault),
            StepAction::Process { process, what } => self.process_fault(*process, *what),
            StepAction::Command { process, what } => {
                if let Some(process) = self.processes.get_mut(*process) {
                    process.command(what.clone());
                }
            }
        }
    }

    fn fault(&mut self, fault: &Fault) {
        self.note_disturbed(fault);
        // Faults of the cluster find a process by the prefix of its user agent.
        let agents: Vec<String> = self.processes.iter().map(Host::agent).collect();
        let acts_at_once = match fault.kind {
            FaultKind::Restore => self.world.has_backup(),
            FaultKind::CutWatches
            | FaultKind::EndWatches
            | FaultKind::Compact
            | FaultKind::Away
            | FaultKind::Blackhole
            | FaultKind::Streams(_)
            | FaultKind::Latency(_) => true,
            // Others have an effect when a request meets them.
            _ => false,
        };
        if acts_at_once {
            self.met(MetFault::Cluster(fault.kind), fault.process);
        }
        self.world.fault(fault, &agents);
        let limits = matches!(fault.kind, FaultKind::Streams(_) | FaultKind::Latency(_));
        if !limits {
            return;
        }
        for (at, process) in self.processes.iter().enumerate() {
            if fault.process.is_none_or(|only| only == at) {
                let mut state = process.link_state.lock();
                match fault.kind {
                    FaultKind::Streams(streams) => state.limit(Some(streams)),
                    FaultKind::Latency(latency) => state.latency = latency,
                    _ => {}
                }
                // Limits belong to the link of a process, not to the cluster, whose rules end by themselves.
                self.limits.push((self.now + fault.lasts, at, fault.kind));
            }
        }
    }

    /// Records the processes and kinds that a fault concerns.
    fn note_disturbed(&self, fault: &Fault) {
        let is_for_a_kind = !matches!(
            fault.kind,
            FaultKind::CutWatches
                | FaultKind::EndWatches
                | FaultKind::Compact
                | FaultKind::Restore
                | FaultKind::Away
                | FaultKind::Blackhole
                | FaultKind::Streams(_)
                | FaultKind::Latency(_)
        );
        let kind = fault
            .resource
            .filter(|_| is_for_a_kind)
            .and_then(|at| self.scenario.kinds.get(at));
        let process = fault.process.and_then(|at| self.processes.get(at));
        self.recorder.note(Event::Disturbed {
            process: process.map(|process| Arc::clone(&process.name)),
            kind: kind.map(|kind| kind.gvk().clone()),
        });
    }

    fn process_fault(&mut self, process: usize, what: ProcessFault) {
        // Shown before it takes effect: what matters is the state that it meets.
        self.met(MetFault::Process(what), Some(process));
        let Some(process) = self.processes.get_mut(process) else {
            return;
        };
        match what {
            ProcessFault::Kill(down) => process.kill(self.now, self.now + down),
            ProcessFault::Restart(down) => process.terminate(down),
            ProcessFault::Pause(length) => process.pause(self.now + length),
            ProcessFault::Clock(by) => process.shift_clock(by),
        }
    }
}

/// Lifts the limit of a link.
pub(super) fn lift(state: &mut LinkState, what: FaultKind) {
    match what {
        FaultKind::Streams(_) => state.limit(None),
        // The latency with which a link begins.
        _ => state.latency = Duration::from_millis(5),
    }
}
