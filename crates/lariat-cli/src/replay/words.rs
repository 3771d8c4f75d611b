//! Records in words.

use std::time::Duration;

use lariat_flight::{
    CallEnd, CauseType, Controlled, End, EntryBody, FactoryStep, LaneVerdict, Lanes, NextStep,
    Queued, Record, Reflected, Stage, Stored, VerdictType, Verdicts, Version,
};

use super::filter::Filter;

/// A line of a timeline.
#[derive(Debug, PartialEq)]
pub(super) struct Line {
    pub(super) text: String,
    /// Whether something went wrong.
    pub(super) is_bad: bool,
}

impl Line {
    fn good(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            is_bad: false,
        }
    }

    fn bad(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            is_bad: true,
        }
    }
}

/// The context in which entries are described.
pub(super) struct Words<'a> {
    pub(super) filter: &'a Filter<'a>,
    pub(super) session: u32,
}

impl Words<'_> {
    /// Returns the description of an entry; `None` if only a check needs it.
    pub(super) fn of(&self, what: &EntryBody<'_>) -> Option<Line> {
        Some(match what {
            EntryBody::Record(record) => self.record(record)?,
            EntryBody::Lost { records } => Line::bad(format!(
                "{records} records lost here: they came faster than they could be written"
            )),
            EntryBody::Missing { frames } => {
                Line::bad(format!("{frames} blocks of the file are damaged here"))
            }
            EntryBody::Unknown { records } => Line::bad(format!(
                "{records} records here are of another version of Lariat and cannot be read"
            )),
        })
    }

    fn record(&self, record: &Record<'_>) -> Option<Line> {
        Some(match record {
            Record::Factory { step, workers } => factory(*step, *workers),
            Record::Reflector { what, .. } => reflected(what),
            Record::Store { what, .. } => Line::good(stored(what)),
            Record::Queue { what, .. } => self.queued(what)?,
            Record::Controller { what, .. } => controlled(what),
        })
    }

    fn queued(&self, what: &Queued<'_>) -> Option<Line> {
        let text = match what {
            Queued::Opened { .. } | Queued::Released {} | Queued::Emptied { .. } => return None,
            Queued::Added { .. } => self.added(what),
            Queued::Dequeued {
                key,
                lanes,
                priority,
                waited,
            } => {
                let (lanes, priority) = (self.lanes(lanes), priority.as_str());
                let waited = span(*waited);
                format!("dequeued {key} for {lanes}, {priority}, due for {waited}")
            }
            Queued::Finished { key, verdicts } => {
                return Some(self.finished(key, verdicts));
            }
            Queued::GivenBack { key } => {
                return Some(Line::bad(format!("{key} came back with nothing done")));
            }
            Queued::DrainBegan {} => "the queue is drained: what comes due now waits".to_owned(),
            Queued::DrainEnded {} => "the drain ended".to_owned(),
            Queued::ShutDown { now: true } => "the queue is shut down at once".to_owned(),
            Queued::ShutDown { now: false } => "the queue is shut down".to_owned(),
            Queued::Reopened {} => "the queue accepts keys again".to_owned(),
            Queued::Forgot { key, lane } => {
                let lane = self.lane(*lane);
                format!("the failures of {lane} for {key} are forgotten")
            }
        };
        Some(Line::good(text))
    }

    fn added(&self, what: &Queued<'_>) -> String {
        let Queued::Added {
            key,
            lanes,
            after,
            priority,
            limited,
            cause,
            by,
            version,
            ..
        } = what
        else {
            return String::new();
        };
        let (lanes, priority) = (self.lanes(lanes), priority.as_str());
        let mut text = format!("queued {key} for {lanes}, {priority}");
        match (after.is_zero(), limited) {
            (true, None) => {}
            (false, None) => text.push_str(&format!(", after {}", span(*after))),
            (true, Some(limited)) => {
                text.push_str(&format!(", after {} (rate limit)", span(*limited)));
            }
            (false, Some(limited)) => {
                // Of the delay of the error and that of the limiter the queue takes the earlier.
                let after = span(*after.min(limited));
                text.push_str(&format!(", after {after} (rate limit)"));
            }
        }
        text + &because(*cause, by, *version)
    }

    fn finished(&self, key: &str, verdicts: &Verdicts) -> Line {
        let verdict = |verdict: &LaneVerdict| {
            let (lane, what) = (self.lane(verdict.lane), verdict.what.as_str());
            match verdict.what {
                VerdictType::Done => format!("{lane} done"),
                VerdictType::Again => format!("{lane} again in {}", span(verdict.after)),
                _ => format!("{lane} {what}, again in {}", span(verdict.after)),
            }
        };
        let verdicts: Vec<String> = verdicts.iter().map(verdict).collect();
        Line::good(if verdicts.is_empty() {
            format!("{key} came back")
        } else {
            format!("{key} came back: {}", verdicts.join("; "))
        })
    }

    fn lanes(&self, lanes: &Lanes) -> String {
        match lanes.as_slice() {
            [] => "no handler".to_owned(),
            // The number of the lane that stands for all handlers.
            [u32::MAX] => "all handlers".to_owned(),
            lanes => {
                let names: Vec<String> = lanes.iter().map(|lane| self.lane(*lane)).collect();
                names.join(", ")
            }
        }
    }

    fn lane(&self, lane: u32) -> String {
        match self.filter.handler(self.session, lane) {
            Some(name) => name.to_owned(),
            None if lane == u32::MAX => "all handlers".to_owned(),
            None => format!("handler #{lane}"),
        }
    }
}

fn because(cause: CauseType, by: &str, version: Version<'_>) -> String {
    let mut text = match cause {
        CauseType::Unknown => return String::new(),
        CauseType::Related => ": a related object changed".to_owned(),
        CauseType::LateHandler => format!(": {by} was registered late"),
        CauseType::Wrote => format!(": written by {by}"),
        CauseType::Retry | CauseType::Requeued => format!(": {} of {by}", cause.as_str()),
        CauseType::Enqueued if !by.is_empty() => format!(": enqueued by {by}"),
        cause => format!(": {}", cause.as_str()),
    };
    if version != Version::Text("") {
        text.push_str(&format!(" at {version}"));
    }
    text
}

fn factory(step: FactoryStep, workers: Option<u32>) -> Line {
    Line::good(match (step, workers) {
        (FactoryStep::Started, Some(workers)) => {
            format!("started, {workers} workers for each kind")
        }
        (step, _) => step.as_str().to_owned(),
    })
}

fn reflected(what: &Reflected<'_>) -> Line {
    Line::good(match what {
        Reflected::Began {
            namespace, since, ..
        } => {
            let place = if namespace.is_empty() {
                "all namespaces".to_owned()
            } else {
                format!("namespace {namespace}")
            };
            match since {
                Some(since) => format!("the reflector of {place} goes on from version {since}"),
                None => format!("the reflector of {place} begins"),
            }
        }
        Reflected::ListBegan { whole: true } => "list, in one piece".to_owned(),
        Reflected::ListBegan { whole: false } => "list, in pages".to_owned(),
        Reflected::StreamBegan {} => "watch with an initial list".to_owned(),
        Reflected::WatchBegan { since } => format!("watch from version {since}"),
        Reflected::CheckBegan { since } => {
            format!("the server is asked for its history, to watch from version {since}")
        }
        Reflected::Page {
            items,
            version,
            more,
        } => {
            let more = if *more { ", more follow" } else { "" };
            format!("page of {items} at version {version}{more}")
        }
        Reflected::Line {
            line, key, version, ..
        } => format!("watch: {} {key} at {version}", line.as_str()),
        Reflected::Bookmark {
            version,
            ends_initial,
        } => {
            if *ends_initial {
                format!("watch: BOOKMARK at {version}, the end of the initial list")
            } else {
                format!("watch: BOOKMARK at {version}")
            }
        }
        Reflected::Loaded { version, objects } => {
            format!("everything was read: {objects} objects at version {version}")
        }
        Reflected::Doubted {} => return Line::bad("the server may have another history"),
        Reflected::Ended {
            stage, end, lasted, ..
        } => return ended(*stage, *end, *lasted),
        Reflected::Decided { next, delay, .. } => match (next, delay.is_zero()) {
            (next, true) => format!("→ {}", next.as_str()),
            (NextStep::Nothing, _) => NextStep::Nothing.as_str().to_owned(),
            (next, false) => format!("→ after {} {}", span(*delay), next.as_str()),
        },
        Reflected::Stopped {} => "the reflector was stopped".to_owned(),
        Reflected::Unreadable {} => return Line::bad("watch: a line that cannot be read"),
    })
}

fn ended(stage: Stage, end: End, lasted: Duration) -> Line {
    let is_same_history = (stage, end) == (Stage::Check, End::Complete);
    let stage = stage.as_str();
    let text = match lasted.is_zero() {
        _ if is_same_history => "the server has the same history".to_owned(),
        true => format!("{stage}: {end}"),
        false => format!("{stage} ended after {}: {end}", span(lasted)),
    };
    match end {
        // These are ends that the server decides on, and no failures.
        End::Complete | End::Closed => Line::good(text),
        _ => Line::bad(text),
    }
}

fn stored(what: &Stored<'_>) -> String {
    match what {
        Stored::Changed {
            change,
            key,
            version,
        } => format!("cache: {} {key} at {version}", change.as_str()),
        Stored::Wrote { key, version } => format!("own write: {key} at {version}"),
        Stored::Removed { key } => format!("own deletion: {key}"),
    }
}

fn controlled(what: &Controlled<'_>) -> Line {
    Line::good(match what {
        Controlled::Registered { handler, .. } => format!("handler {handler} was registered"),
        Controlled::Deregistered { handler, .. } => format!("handler {handler} was taken away"),
        Controlled::Started { workers } => format!("{workers} workers began"),
        Controlled::Stopped {} => "the workers ended".to_owned(),
        Controlled::CallBegan {
            run,
            key,
            handler,
            attempt,
            ..
        } => match attempt {
            1 => format!("run {run}: {handler} is called for {key}"),
            _ => format!("run {run}: {handler} is called for {key} (attempt {attempt})"),
        },
        Controlled::CallEnded {
            run,
            key,
            handler,
            end,
            took,
            again,
        } => {
            let again =
                again.map_or_else(String::new, |again| format!(", again in {}", span(again)));
            let took = span(*took);
            let text = format!(
                "run {run}: {handler} {} for {key} after {took}{again}",
                end.as_str()
            );
            return match end {
                CallEnd::Done | CallEnd::Requeued | CallEnd::Ignored | CallEnd::Held => {
                    Line::good(text)
                }
                CallEnd::Failed | CallEnd::Terminal | CallEnd::Panicked | CallEnd::TimedOut => {
                    Line::bad(text)
                }
            };
        }
    })
}

/// Returns a time span with one digit behind the point.
pub(super) fn span(span: Duration) -> String {
    if span.is_zero() {
        "0s".to_owned()
    } else {
        format!("{span:.1?}")
    }
}
