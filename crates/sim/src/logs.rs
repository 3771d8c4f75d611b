//! Adds the log lines of the libraries to the trace.

use std::fmt::{self, Write};

use tracing::field::{Field, Visit};
use tracing::subscriber::{DefaultGuard, NoSubscriber};
use tracing::{Dispatch, Level, Metadata, Subscriber, span};

use crate::event::Event;
use crate::record::Recorder;

/// Adds warnings and errors to the trace until the guard is dropped.
///
/// It is for this thread alone: runs on other threads have traces of their own. If `is_asked` is false the trace gets
/// none: log lines go to the subscriber of the program. Without one they go nowhere, and factories do not warn of that.
pub(crate) fn begin(recorder: &Recorder, is_asked: bool) -> Option<DefaultGuard> {
    let dispatch = if is_asked {
        Dispatch::new(Logs {
            recorder: recorder.clone(),
        })
    } else if tracing::dispatcher::has_been_set() {
        return None;
    } else {
        Dispatch::new(NoSubscriber::new())
    };
    Some(tracing::dispatcher::set_default(&dispatch))
}

struct Logs {
    recorder: Recorder,
}

impl Subscriber for Logs {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= Level::WARN
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        // Spans are not enabled, but the method must return an id, which must not be zero.
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let metadata = event.metadata();
        let mut line = Line(format!("{} {}:", metadata.level(), metadata.target()));
        event.record(&mut line);
        self.recorder.note(Event::Log(line.0));
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// The message and the fields of an event on one line.
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let written = format!("{value:?}");
        // Only the first line of a backtrace is used: the others differ from machine to machine.
        let text = written.lines().next().unwrap_or_default();
        let written = match field.name() {
            "message" => write!(self.0, " {text}"),
            name => write!(self.0, " {name}={text}"),
        };
        // A string takes everything.
        written.unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::begin;
    use crate::observer::NoObserver;
    use crate::record::Recorder;

    #[test]
    fn warnings_are_lines_of_the_trace_and_information_is_not() {
        let recorder = Recorder::new(Box::new(NoObserver));
        let logging = begin(&recorder, true);
        tracing::info!("all is well");
        tracing::warn!(key = "default/a", "something\nis wrong");
        drop(logging);
        tracing::warn!("said later");
        let (trace, _) = recorder.finish();
        let lines: Vec<_> = trace.lines().collect();
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(
            lines[0].ends_with("WARN lariat_sim::logs::tests: something key=\"default/a\""),
            "{lines:?}"
        );
    }

    #[test]
    fn a_log_line_is_no_sign_that_something_goes_on() {
        let recorder = Recorder::new(Box::new(NoObserver));
        let before = recorder.events();
        let logging = begin(&recorder, true);
        tracing::error!("no");
        drop(logging);
        assert_eq!(recorder.events(), before);
    }
}
