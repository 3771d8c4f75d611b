//! The lines of a run.

use std::collections::VecDeque;
use std::fmt::Write;

use lariat_core::fnv1a;

use crate::polls::mix;

/// The number of lines of a trace that are kept; the hash covers all.
const KEPT: usize = 20_000;

/// The number of lines that are shown before a difference.
const CONTEXT: usize = 10;

/// The log of a run, line by line, and a hash over all of it.
///
/// Two runs of one simulation with one seed have equal traces. The hash covers more than the lines: with
/// `--cfg tokio_unstable` also the order in which tasks were polled.
///
/// ```
/// use lariat::sim::{Chaos, Simulation};
/// use std::time::Duration;
///
/// let simulation = Simulation::new(1)
///     .chaos(Chaos::default().duration(Duration::from_secs(1)))
///     .program("reader", |process| async move {
///         drop(process.client().apiserver_version().await);
///         process.terminated().await;
///         Ok(())
///     })
///     .shrinks(false);
/// let trace = |simulation: &Simulation| match simulation.run() {
///     Ok(report) => report.trace().clone(),
///     Err(failure) => failure.trace().clone(),
/// };
/// # if cfg!(tokio_unstable) {
/// trace(&simulation).compare(&trace(&simulation)).unwrap();
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Trace {
    lines: VecDeque<Line>,
    count: u64,
    hash: u64,
}

#[derive(Debug, Clone)]
struct Line {
    text: String,
    /// The hash after it.
    hash: u64,
}

impl Trace {
    pub(crate) fn push(&mut self, text: String) {
        self.hash = fnv1a(fnv1a(self.hash, text.as_bytes()), b"\n");
        self.count += 1;
        // The hash of a line covers all lines before it, so dropping them loses no difference.
        if self.lines.len() == KEPT {
            self.lines.pop_front();
        }
        let hash = self.hash;
        self.lines.push_back(Line { text, hash });
    }

    /// Mixes a number into the hash that has no line.
    pub(crate) fn fold(&mut self, number: u64) {
        self.hash = mix(self.hash, number);
    }

    /// Returns at most the last 20,000 lines, with virtual time and actor.
    #[must_use]
    pub fn lines(&self) -> impl ExactSizeIterator<Item = &str> {
        self.lines.iter().map(|line| line.text.as_str())
    }

    /// Returns the number of lines, dropped ones included.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns a hash over the whole run, lines that are not kept included.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Looks for the first difference of two traces.
    ///
    /// # Errors
    ///
    /// They differ: the text shows the first line that is different in one of them and the lines before it. Where all
    /// lines kept are equal, it names the line before which the order of tasks began to differ.
    ///
    /// ```
    /// use lariat::sim::{Chaos, Simulation};
    /// use std::time::Duration;
    ///
    /// let trace = |seed| {
    ///     let simulation = Simulation::new(seed)
    ///         .chaos(Chaos::default().duration(Duration::from_secs(1)).settle(Duration::from_secs(60)))
    ///         .program("idle", |process| async move {
    ///             process.note(process.name());
    ///             process.terminated().await;
    ///             Ok(())
    ///         });
    ///     simulation.run().map(|report| report.trace().clone())
    /// };
    /// let (one, other) = (trace(1).unwrap(), trace(2).unwrap());
    /// assert!(one.compare(&one).is_ok());
    /// let difference = one.compare(&other).unwrap_err();
    /// assert!(!difference.is_empty());
    /// ```
    pub fn compare(&self, other: &Self) -> Result<(), String> {
        // Polls after the last line are in the hash of the trace, but in that of no line.
        if self.hash == other.hash && self.count == other.count {
            return Ok(());
        }
        // Pairs by their place: both have dropped as many lines, unless they differ in their number.
        let both = self.lines.iter().zip(&other.lines);
        let text = both.clone().position(|(one, two)| one.text != two.text);
        let order = both.clone().position(|(one, two)| one.hash != two.hash);
        let end = self.lines.len().min(other.lines.len());
        let (at, what) = match (text, order) {
            (Some(text), Some(order)) if order < text => (text, "lines differ, tasks did before:"),
            (Some(text), _) => (text, "lines differ:"),
            (None, Some(order)) => (order, "tasks ran in another order before this line:"),
            (None, None) => (end, "one ends here:"),
        };
        Err(self.difference(other, at, what, order.unwrap_or(at)))
    }

    fn difference(&self, other: &Self, at: usize, what: &str, order: usize) -> String {
        let mut shown = format!("{} and {} lines; {what}\n", self.count, other.count);
        for number in order.min(at).saturating_sub(CONTEXT)..at {
            if let Some(line) = self.lines.get(number) {
                let mark = if number >= order { '~' } else { ' ' };
                writeln!(shown, "{mark} {}", line.text).unwrap_or_default();
            }
        }
        for (mark, trace) in [('-', self), ('+', other)] {
            let line = trace.lines.get(at).map_or("(the end)", |line| &line.text);
            writeln!(shown, "{mark} {line}").unwrap_or_default();
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::Trace;

    fn trace(lines: &[&str]) -> Trace {
        let mut trace = Trace::default();
        for line in lines {
            trace.push((*line).to_owned());
        }
        trace
    }

    #[test]
    fn equal_traces_do_not_differ() {
        trace(&["a", "b"]).compare(&trace(&["a", "b"])).unwrap();
    }

    #[test]
    fn the_first_line_that_differs_is_shown_after_those_before_it() {
        let difference = trace(&["a", "b", "d"]).compare(&trace(&["a", "c", "d"]));
        assert_eq!(
            difference.unwrap_err(),
            "3 and 3 lines; lines differ:\n  a\n- b\n+ c\n"
        );
    }

    #[test]
    fn another_order_of_tasks_is_a_difference_though_all_lines_are_equal() {
        let (mut one, mut two) = (trace(&["a"]), trace(&["a"]));
        one.fold(1);
        two.fold(2);
        one.push("b".to_owned());
        two.push("b".to_owned());
        let difference = one.compare(&two).unwrap_err();
        assert!(
            difference.contains("another order before this line"),
            "{difference}"
        );
    }

    #[test]
    fn a_trace_that_ends_earlier_differs() {
        let difference = trace(&["a"]).compare(&trace(&["a", "b"])).unwrap_err();
        assert!(difference.ends_with("- (the end)\n+ b\n"), "{difference}");
    }
}
