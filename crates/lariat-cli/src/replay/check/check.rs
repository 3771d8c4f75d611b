//! The comparison of a recording with today's code.

use lariat_flight::{EntryBody, Recording};

use super::machines::{Machines, machine_of};
use super::outcome::Outcome;
use super::report::{Difference, Report};
use crate::replay::filter::Filter;
use crate::replay::words::Words;

/// Replays every record with today's code, up to the first difference.
pub(crate) fn check(recording: &Recording, filter: &Filter<'_>) -> Report {
    // Times are counted from some moment; which one does not matter.
    let start = tokio::time::Instant::now().into_std();
    let mut machines = Machines::default();
    for entry in recording.entries() {
        let session = entry.session.number;
        let EntryBody::Record(record) = &entry.body else {
            // Missing records may be about any machine.
            machines.forget();
            continue;
        };
        // Stores and handlers decide nothing: what they record follows from queues and reflectors.
        let Some((kind, id)) = machine_of(session, record) else {
            continue;
        };
        if !filter.wants_kind(kind) {
            continue;
        }
        let words = Words { filter, session };
        if let Some(line) = words.of(&entry.body) {
            let line = format!("+{:.6}s  {}", entry.at.as_secs_f64(), line.text);
            // Before the comparison, so that the context ends with the decision itself.
            machines.note(id, line);
        }
        let outcome = machines.take(id, record, start + entry.at);
        if let Outcome::Differs(recorded, today) = outcome {
            machines.report.difference = Some(Difference {
                session,
                at: entry.at,
                kind: kind.to_owned(),
                recorded,
                today,
                context: machines.context.remove(&id).unwrap_or_default(),
            });
            // After a difference today's state is another one, and all that follows would differ.
            break;
        }
    }
    machines.report
}
