//! Sums: counts, the longest waits and calls, the hottest keys.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use lariat_flight::{
    CallEnd, Controlled, End, EntryBody, Queued, Record, Recording, Reflected, Session, Stage,
};

use super::filter::Filter;
use super::timeline::title;
use super::words::span;

/// How many of the longest and the hottest are named.
const NAMED: usize = 5;

/// What is counted of a kind.
#[derive(Debug, Default)]
struct Kind {
    lists: usize,
    watches: usize,
    lines: usize,
    changes: usize,
    /// The failed ends of lists and watches by reason; complete ones are separate.
    ends: BTreeMap<String, usize>,
    queued: usize,
    dequeued: usize,
}

/// What is counted of a handler.
#[derive(Debug, Default)]
struct Handler {
    calls: usize,
    ends: BTreeMap<CallEnd, usize>,
    total: Duration,
    longest: Duration,
}

/// What is counted of a session.
#[derive(Debug, Default)]
struct Sums<'a> {
    records: usize,
    lost: u64,
    lasted: Duration,
    kinds: BTreeMap<&'a str, Kind>,
    handlers: BTreeMap<(&'a str, &'a str), Handler>,
    /// Dequeues of keys.
    keys: BTreeMap<(&'a str, &'a str), usize>,
    waits: Vec<(Duration, Duration, String)>,
    calls: Vec<(Duration, Duration, String)>,
}

/// Returns the sums of every session, in words.
pub(super) fn text(recording: &Recording, filter: &Filter<'_>) -> String {
    let mut text = String::new();
    let mut sessions: Vec<(Session<'_>, Sums<'_>)> = Vec::new();
    for entry in recording.entries().filter(|entry| filter.wants(entry)) {
        if sessions
            .last()
            .is_none_or(|(last, _)| *last != entry.session)
        {
            sessions.push((entry.session, Sums::default()));
        }
        if let Some((_, sums)) = sessions.last_mut() {
            sums.count(entry.at, entry.body);
        }
    }
    if sessions.is_empty() {
        text.push_str("nothing in the recording is like that\n");
    }
    for (at, (session, sums)) in sessions.iter().enumerate() {
        let gap = if at > 0 { "\n" } else { "" };
        let _ = writeln!(text, "{gap}{}", title(session));
        sums.write(&mut text);
    }
    text
}

impl<'a> Sums<'a> {
    fn count(&mut self, at: Duration, what: EntryBody<'a>) {
        self.lasted = self.lasted.max(at);
        match what {
            EntryBody::Record(record) => {
                self.records += 1;
                self.record(at, record);
            }
            EntryBody::Lost { records } | EntryBody::Unknown { records } => {
                self.lost += u64::from(records)
            }
            EntryBody::Missing { .. } => {}
        }
    }

    fn record(&mut self, at: Duration, record: Record<'a>) {
        match record {
            Record::Factory { .. } => {}
            Record::Reflector { kind, what, .. } => self.reflected(kind, &what),
            Record::Store { kind, .. } => self.kinds.entry(kind).or_default().changes += 1,
            Record::Queue { kind, what, .. } => self.queued(at, kind, &what),
            Record::Controller { kind, what } => self.controlled(at, kind, &what),
        }
    }

    fn reflected(&mut self, name: &'a str, what: &Reflected<'_>) {
        let kind = self.kinds.entry(name).or_default();
        match what {
            Reflected::ListBegan { .. } => kind.lists += 1,
            Reflected::WatchBegan { .. } | Reflected::StreamBegan {} => kind.watches += 1,
            Reflected::Line { .. } => kind.lines += 1,
            Reflected::Ended { stage, end, .. } if !is_usual(*stage, *end) => {
                *kind.ends.entry(end.to_string()).or_default() += 1;
            }
            _ => {}
        }
    }

    fn queued(&mut self, at: Duration, name: &'a str, what: &Queued<'a>) {
        let kind = self.kinds.entry(name).or_default();
        match what {
            Queued::Added { .. } => kind.queued += 1,
            Queued::Dequeued { key, waited, .. } => {
                kind.dequeued += 1;
                *self.keys.entry((name, key)).or_default() += 1;
                let line = || format!("{name} {key}");
                keep_longest(&mut self.waits, *waited, at, line);
            }
            _ => {}
        }
    }

    fn controlled(&mut self, at: Duration, name: &'a str, what: &Controlled<'a>) {
        if let Controlled::CallEnded {
            key,
            handler,
            end,
            took,
            ..
        } = what
        {
            let sums = self.handlers.entry((name, handler)).or_default();
            sums.calls += 1;
            *sums.ends.entry(*end).or_default() += 1;
            sums.total += *took;
            sums.longest = sums.longest.max(*took);
            let line = || format!("{handler} of {name} for {key}");
            keep_longest(&mut self.calls, *took, at, line);
        }
    }

    fn write(&self, to: &mut String) {
        let (records, lasted) = (self.records, span(self.lasted));
        let _ = writeln!(to, "  records: {records}, the last after {lasted}");
        if self.lost > 0 {
            let _ = writeln!(to, "  lost or not readable: {}", self.lost);
        }
        for (name, kind) in &self.kinds {
            kind.write(name, to);
        }
        for ((kind, name), handler) in &self.handlers {
            handler.write(kind, name, to);
        }
        list(to, "longest waits in a queue", &self.waits);
        list(to, "longest calls", &self.calls);
        let mut hottest: Vec<_> = self.keys.iter().filter(|(_, count)| **count > 1).collect();
        // By key second, so that equal counts come in the same order each time.
        hottest.sort_by_key(|(key, count)| (Reverse(**count), **key));
        if !hottest.is_empty() {
            let _ = writeln!(to, "  keys dequeued most often");
        }
        for ((kind, key), count) in hottest.iter().take(NAMED) {
            let _ = writeln!(to, "    {count:>8} × {kind} {key}");
        }
    }
}

impl Kind {
    fn write(&self, name: &str, to: &mut String) {
        let Self {
            lists,
            watches,
            lines,
            changes,
            queued,
            dequeued,
            ..
        } = self;
        let _ = writeln!(
            to,
            "  {name}: lists {lists}, watches {watches}, lines {lines}, changes {changes}, queued {queued}, \
             dequeued {dequeued}"
        );
        for (end, count) in &self.ends {
            let _ = writeln!(to, "    {count} × {end}");
        }
    }
}

impl Handler {
    fn write(&self, kind: &str, name: &str, to: &mut String) {
        let ends: Vec<String> = self
            .ends
            .iter()
            .map(|(end, count)| format!("{count} {}", end.as_str()))
            .collect();
        let calls = self.calls;
        let average = self.total / u32::try_from(calls).unwrap_or(u32::MAX).max(1);
        let ends = ends.join(", ");
        let (average, longest) = (span(average), span(self.longest));
        let _ = writeln!(
            to,
            "  {kind}, handler {name}: calls {calls} ({ends}), {average} on average, {longest} at most"
        );
    }
}

/// Returns whether this is a normal end of a list or a watch.
fn is_usual(stage: Stage, end: End) -> bool {
    // An API server closes each watch after some minutes.
    end == End::Complete || (stage == Stage::Watch && end == End::Closed)
}

/// Keeps what takes long, the longest first.
fn keep_longest(
    longest: &mut Vec<(Duration, Duration, String)>,
    took: Duration,
    at: Duration,
    line: impl FnOnce() -> String,
) {
    let place = longest.partition_point(|(longer, ..)| *longer >= took);
    // The line is formatted only if it is kept, which few of many records are.
    if place < NAMED && !took.is_zero() {
        longest.insert(place, (took, at, line()));
        longest.truncate(NAMED);
    }
}

fn list(to: &mut String, title: &str, longest: &[(Duration, Duration, String)]) {
    if !longest.is_empty() {
        let _ = writeln!(to, "  {title}");
    }
    for (took, at, line) in longest {
        let took = span(*took);
        let _ = writeln!(to, "    {took:>8} {line}, at +{:.3}s", at.as_secs_f64());
    }
}
