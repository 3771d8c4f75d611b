//! The history of a key as lines of text.

use jiff::Timestamp;
use lariat_console::api::{
    CallInfo, CauseInfo, GivenUp, HotLoop, InProgress, KeyDetail, Link, QueuedKey, RunInfo,
};

use super::grid::{Tone, padded, width};
use super::kinds::full_name;
use super::words::{counted, duration};

/// How wide names of handlers may be.
const LABEL: usize = 24;

/// How many seconds ago the date says nothing.
const DAY: f64 = 86_400.0;

/// A line, and the object it is about if that is another one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) text: String,
    pub(crate) tone: Tone,
    pub(crate) link: Option<Link>,
}

impl Line {
    pub(crate) fn new(text: impl Into<String>, tone: Tone) -> Self {
        Self {
            text: text.into(),
            tone,
            link: None,
        }
    }
}

/// Returns which key it is, and whether it is cached.
pub(crate) fn heading(key: &KeyDetail) -> String {
    let name = match &key.namespace[..] {
        "" => key.name.clone(),
        namespace => format!("{namespace}/{}", key.name),
    };
    let cached = match &key.resource_version {
        Some(version) => format!("cached at version {version}"),
        None => "not in the cache".to_owned(),
    };
    format!("{} {name}, {cached}", full_name(&key.kind))
}

/// Returns a run: when it was, why, and what each handler did.
pub(crate) fn run_lines(run: &RunInfo) -> Vec<Line> {
    let calls = run.calls.iter().map(|call| width(&call.handler));
    let label = calls
        .max()
        .unwrap_or_default()
        // The word `because` stands in the same column as the names of the handlers.
        .clamp("because".len(), LABEL);
    let head = format!(
        "#{}  {}  {} ago, waited {}, took {}",
        run.run,
        time(&run.at, run.ago),
        duration(run.ago),
        duration(run.waited),
        duration(run.took)
    );
    let mut lines = vec![Line::new(head, Tone::Strong)];
    for cause in &run.causes {
        lines.push(Line {
            text: format!(
                "  {}  {}",
                padded("because", label, false),
                cause_text(cause)
            ),
            tone: Tone::Plain,
            link: cause.link.clone(),
        });
    }
    for call in &run.calls {
        let tone = if call.failed { Tone::Bad } else { Tone::Good };
        let text = format!(
            "  {}  {}",
            padded(&call.handler, label, false),
            call_text(call)
        );
        lines.push(Line::new(text, tone));
    }
    lines
}

/// Returns what happens to a key now and next.
pub(crate) fn state_lines(key: &KeyDetail) -> Vec<Line> {
    let running = key.in_progress.iter().map(running_line);
    running.chain(next_lines(key)).collect()
}

/// Returns what happens to a key next.
pub(crate) fn next_lines(key: &KeyDetail) -> Vec<Line> {
    let mut lines: Vec<Line> = key.queued.iter().flat_map(queued_lines).collect();
    lines.extend(key.given_up.iter().map(given_up_line));
    lines.extend(key.hot_loop.iter().map(loop_line));
    lines
}

/// Returns the call that is running.
pub(crate) fn running_line(call: &InProgress) -> Line {
    let handler = match &call.handler {
        Some(handler) => format!("in {handler}"),
        None => "before its first handler".to_owned(),
    };
    let text = format!("now      running {handler} for {}", duration(call.lasts));
    Line::new(text, Tone::Warn)
}

fn given_up_line(given_up: &GivenUp) -> Line {
    let (handler, ago) = (&given_up.handler, duration(given_up.ago));
    let text = format!(
        "next     {handler} is not called again until the object changes or the key is enqueued; it failed {ago} ago"
    );
    Line::new(text, Tone::Bad)
}

/// Returns a time of the last day without its date.
pub(crate) fn time(at: &str, ago: f64) -> String {
    match at.parse::<Timestamp>() {
        Ok(time) if ago < DAY => time.strftime("%H:%M:%S%.3f").to_string(),
        Ok(time) => time.strftime("%Y-%m-%d %H:%M:%S").to_string(),
        // What a later version may write.
        Err(_) => at.to_owned(),
    }
}

/// Returns a cause with all that its sentence does not say.
fn cause_text(cause: &CauseInfo) -> String {
    let mut text = cause.text.clone();
    let mut add = |word: &str, name: &str| {
        // The sentence of the program often names it already.
        if !text.contains(name) {
            text.push_str(&format!(" {word} {name}"));
        }
    };
    if let Some(handler) = &cause.handler {
        add("by", handler);
    }
    if let Some(link) = &cause.link {
        add("from", &format!("{} {}", link.kind.kind, link.key));
    }
    if !cause.fields.is_empty() {
        text.push_str(": ");
        text.push_str(&cause.fields.join(", "));
    }
    text
}

fn call_text(call: &CallInfo) -> String {
    let mut text = format!("{}, {}", call.ended.replace('_', " "), duration(call.took));
    if call.attempt > 1 {
        text.push_str(&format!(", attempt {}", call.attempt));
    }
    if call.conflict {
        text.push_str(", 409 Conflict");
    }
    if let Some(again) = call.again {
        text.push_str(&format!(", again in {}", duration(again)));
    }
    for said in call.error.iter().chain(&call.note) {
        text.push_str(": ");
        text.push_str(said);
    }
    text
}

fn queued_lines(queued: &QueuedKey) -> Vec<Line> {
    let lanes = queued.lanes.iter().map(|lane| {
        // The console writes the lane of all handlers so.
        let handler = match &lane.handler[..] {
            "*" => "all handlers",
            handler => handler,
        };
        let when = if lane.due_in > 0.0 {
            format!("due in {}", duration(lane.due_in))
        } else {
            "due".to_owned()
        };
        let failures = usize::try_from(lane.failures).unwrap_or(usize::MAX);
        let failed = match failures {
            0 => String::new(),
            failures => format!(", after {}", counted(failures, "failure")),
        };
        let tone = if failures > 0 { Tone::Bad } else { Tone::Plain };
        Line::new(format!("next     {handler} {when}{failed}"), tone)
    });
    let mut lines: Vec<Line> = lanes.collect();
    if queued.state == "ready" {
        let text = format!(
            "waiting  {} priority, due for {}",
            queued.priority,
            duration(queued.due_for)
        );
        lines.insert(0, Line::new(text, Tone::Plain));
    }
    lines
}

fn loop_line(found: &HotLoop) -> Line {
    let mut text = format!("loop     {}", found.pattern);
    if !found.fields.is_empty() {
        text.push_str(&format!(" ({})", found.fields.join(", ")));
    }
    let rounds = usize::try_from(found.rounds).unwrap_or(usize::MAX);
    text.push_str(&format!("; {}", counted(rounds, "round")));
    Line::new(text, Tone::Bad)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::samples;

    fn text(lines: &[Line]) -> String {
        let lines: Vec<&str> = lines.iter().map(|line| &line.text[..]).collect();
        lines.join("\n")
    }

    #[test]
    fn a_run_says_why_it_was_and_how_it_ended() {
        let key = samples::key();
        assert_eq!(
            heading(&key),
            "Deployment.apps shop/web, cached at version 4711"
        );
        let expected = "\
#42  12:01:35.120  2m00s ago, waited 2ms, took 40ms
  because  updated 4700 → 4711: spec.replicas, spec.template
  because  enqueued at src/a.rs:7 by pods from Pod shop/web-1
  deploy   done, 12ms
  status   timed out, 10s, attempt 3, 409 Conflict, again in 8.0s: connection refused";
        assert_eq!(text(&run_lines(&key.runs[0])), expected);
    }

    #[test]
    fn the_present_says_what_is_due_and_what_is_wrong() {
        let expected = "\
now      running in status for 4.2s
waiting  high priority, due for 2.0s
next     all handlers due
next     status due in 8.0s, after 3 failures
next     deploy is not called again until the object changes or the key is enqueued; it failed 2h05m ago
loop     two handlers write spec.replicas in turns (spec.replicas); 12 rounds";
        assert_eq!(text(&state_lines(&samples::key())), expected);
    }

    #[test]
    fn old_times_have_a_date_and_unreadable_ones_stay() {
        let at = "2026-11-24T12:01:35.12Z";
        assert_eq!(time(at, 5.0), "12:01:35.120");
        assert_eq!(time(at, 2.0 * DAY), "2026-11-24 12:01:35");
        assert_eq!(time("yesterday", 5.0), "yesterday");
    }
}
