//! The queues and reflectors of a recording, as today's code has them.

use std::collections::HashMap;
use std::time::Instant;

use lariat_flight::Record;

use super::outcome::Outcome;
use super::queue::Queue;
use super::reflector::Reflector;
use super::report::Report;

/// How many records before a difference are shown.
const CONTEXT: usize = 6;

/// A queue or a reflector of a session.
pub(super) type MachineId = (u32, Machine, u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Machine {
    Queue,
    Reflector,
}

/// The queues and reflectors by session and number, and what has been compared.
#[derive(Default)]
pub(super) struct Machines {
    queues: HashMap<MachineId, Queue>,
    reflectors: HashMap<MachineId, Reflector>,
    pub(super) context: HashMap<MachineId, Vec<String>>,
    pub(super) report: Report,
}

impl Machines {
    /// Forgets all states, since records are missing.
    pub(super) fn forget(&mut self) {
        // The context stays: its lines were recorded, whatever is missing after them.
        self.queues.clear();
        self.reflectors.clear();
    }

    /// Keeps a line as context of the records that follow.
    pub(super) fn note(&mut self, id: MachineId, line: String) {
        let context = self.context.entry(id).or_default();
        // One more than shown before a difference, as the decision itself is among them.
        if context.len() > CONTEXT {
            context.remove(0);
        }
        context.push(line);
    }

    /// Gives a record to its machine, and counts whether it could be compared.
    pub(super) fn take(&mut self, id: MachineId, record: &Record<'_>, at: Instant) -> Outcome {
        let (outcome, compared) = match record {
            Record::Queue { what, .. } => {
                let queue = self.queues.entry(id).or_default();
                (queue.take(what, at), &mut self.report.dequeues)
            }
            Record::Reflector { what, .. } => {
                let reflector = self.reflectors.entry(id).or_default();
                (reflector.take(what, at), &mut self.report.decisions)
            }
            _ => return Outcome::Taken,
        };
        compared.count(&outcome);
        outcome
    }
}

/// Returns the kind and the machine of a record, if it is about one.
pub(super) fn machine_of<'a>(session: u32, record: &Record<'a>) -> Option<(&'a str, MachineId)> {
    match record {
        Record::Queue { kind, queue, .. } => Some((kind, (session, Machine::Queue, *queue))),
        Record::Reflector {
            kind, reflector, ..
        } => Some((kind, (session, Machine::Reflector, *reflector))),
        _ => None,
    }
}
