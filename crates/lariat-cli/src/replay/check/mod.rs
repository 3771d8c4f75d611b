//! Giving what was recorded to today's code, and comparing what it decides.

mod queue;
mod reflector;

use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, Instant};

use lariat_flight::{Record, Recording, What};

use super::filter::Filter;
use super::words::Words;
use queue::Queue;
use reflector::Reflector;

/// How many records before a difference are shown.
const CONTEXT: usize = 6;

/// What today's code decides otherwise, and how much was compared.
#[derive(Debug, Default)]
pub(super) struct Report {
    hand_outs: Compared,
    decisions: Compared,
    difference: Option<Difference>,
}

/// How many decisions there are, and how many of them were compared.
#[derive(Debug, Default)]
struct Compared {
    recorded: usize,
    compared: usize,
}

/// The first decision that today's code makes otherwise.
#[derive(Debug)]
struct Difference {
    session: u32,
    at: Duration,
    kind: String,
    recorded: String,
    today: String,
    /// The last records of the same queue or reflector, the oldest first.
    context: Vec<String>,
}

/// What comes of giving a record to today's code.
#[derive(Debug, PartialEq)]
enum Outcome {
    /// It is no decision.
    Taken,
    /// It is a decision, and what comes before it is not known well enough.
    Unknown,
    Same,
    /// What was recorded, and what today's code decides.
    Differs(String, String),
}

/// A queue or a reflector of a session.
type Which = (u32, Machine, u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Machine {
    Queue,
    Reflector,
}

/// Gives every record to today's code, up to the first difference.
pub(super) fn check(recording: &Recording, filter: &Filter<'_>) -> Report {
    // Times are counted from some moment; which one does not matter.
    let start = tokio::time::Instant::now().into_std();
    let mut checks = Checks::default();
    for entry in recording.entries() {
        let session = entry.session.number;
        let What::Record(record) = &entry.what else {
            // What is missing may be about any of them.
            checks.forget();
            continue;
        };
        let Some((kind, which)) = machine(session, record) else {
            continue;
        };
        if !filter.wants_kind(kind) {
            continue;
        }
        let words = Words { filter, session };
        if let Some(line) = words.of(&entry.what) {
            let line = format!("+{:.6}s  {}", entry.at.as_secs_f64(), line.text);
            checks.note(which, line);
        }
        let outcome = checks.take(which, record, start + entry.at);
        if let Outcome::Differs(recorded, today) = outcome {
            checks.report.difference = Some(Difference {
                session,
                at: entry.at,
                kind: kind.to_owned(),
                recorded,
                today,
                context: checks.context.remove(&which).unwrap_or_default(),
            });
            break;
        }
    }
    checks.report
}

fn machine<'a>(session: u32, record: &Record<'a>) -> Option<(&'a str, Which)> {
    match record {
        Record::Queue { kind, queue, .. } => Some((kind, (session, Machine::Queue, *queue))),
        Record::Reflector {
            kind, reflector, ..
        } => Some((kind, (session, Machine::Reflector, *reflector))),
        _ => None,
    }
}

#[derive(Default)]
struct Checks {
    queues: HashMap<Which, Queue>,
    reflectors: HashMap<Which, Reflector>,
    context: HashMap<Which, Vec<String>>,
    report: Report,
}

impl Checks {
    fn forget(&mut self) {
        self.queues.clear();
        self.reflectors.clear();
    }

    fn note(&mut self, which: Which, line: String) {
        let context = self.context.entry(which).or_default();
        if context.len() > CONTEXT {
            context.remove(0);
        }
        context.push(line);
    }

    fn take(&mut self, which: Which, record: &Record<'_>, at: Instant) -> Outcome {
        let (outcome, compared) = match record {
            Record::Queue { what, .. } => {
                let queue = self.queues.entry(which).or_default();
                (queue.take(what, at), &mut self.report.hand_outs)
            }
            Record::Reflector { what, .. } => {
                let reflector = self.reflectors.entry(which).or_default();
                (reflector.take(what, at), &mut self.report.decisions)
            }
            _ => return Outcome::Taken,
        };
        compared.recorded += usize::from(outcome != Outcome::Taken);
        compared.compared += usize::from(!matches!(outcome, Outcome::Taken | Outcome::Unknown));
        outcome
    }
}

impl Report {
    pub(super) fn is_equal(&self) -> bool {
        self.difference.is_none()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (queues, reflectors) = (&self.hand_outs, &self.decisions);
        if let Some(difference) = &self.difference {
            write!(f, "{difference}")?;
            let before = queues.compared + reflectors.compared - 1;
            return writeln!(f, "{before} decisions before it are the same");
        }
        let compared = queues.compared + reflectors.compared;
        writeln!(
            f,
            "no difference in {compared} decisions: {} hand-outs of queues, {} decisions of reflectors",
            queues.compared, reflectors.compared
        )?;
        let unknown = queues.recorded + reflectors.recorded - compared;
        if unknown > 0 {
            writeln!(
                f,
                "{unknown} more could not be compared: what came before them is not in the recording"
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            session,
            at,
            kind,
            recorded,
            today,
            context,
        } = self;
        let at = at.as_secs_f64();
        writeln!(f, "difference in session {session} at +{at:.6}s, {kind}:")?;
        writeln!(f, "  recorded: {recorded}")?;
        writeln!(f, "  today:    {today}")?;
        writeln!(
            f,
            "the records that led to it, the last one is the recorded decision:"
        )?;
        context.iter().try_for_each(|line| writeln!(f, "  {line}"))
    }
}
