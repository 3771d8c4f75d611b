//! The output of lines, and whether they are coloured.

use std::env;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;

use parking_lot::Mutex;

/// The output of lines.
#[derive(Clone)]
pub(super) enum Output {
    Stderr,
    Stdout,
    Writer(Arc<Mutex<dyn Write + Send>>),
}

impl Output {
    /// Writes a line with one call, so that lines of several threads do not mix.
    ///
    /// Errors are ignored, because there is no place to report them.
    pub(super) fn write(&self, mut line: String) {
        // Part of the same write; a separate one could be interleaved with another thread's line.
        line.push('\n');
        let line = line.as_bytes();
        let _ = match self {
            Self::Stderr => io::stderr().lock().write_all(line),
            Self::Stdout => io::stdout().lock().write_all(line),
            Self::Writer(writer) => writer.lock().write_all(line),
        };
    }

    /// Returns whether lines are coloured: on a terminal, unless the environment has `NO_COLOR`.
    pub(super) fn is_coloured(&self) -> bool {
        let is_terminal = match self {
            Self::Stderr => io::stderr().is_terminal(),
            Self::Stdout => io::stdout().is_terminal(),
            Self::Writer(_) => false,
        };
        is_terminal && !is_set("NO_COLOR") && env::var_os("TERM").is_none_or(|term| term != "dumb")
    }
}

/// Returns whether a variable of the environment has a value.
fn is_set(variable: &str) -> bool {
    // An empty `NO_COLOR` counts as not set: <https://no-color.org>.
    env::var_os(variable).is_some_and(|value| !value.is_empty())
}
