//! Printing what was answered.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde::Serialize;

use super::grid::Tone;
use super::history::Line;
use crate::signal;

/// The standard output, whose reader may go.
#[derive(Debug)]
pub(crate) struct Printer {
    has_colours: bool,
    is_read: bool,
}

impl Printer {
    pub(crate) fn new() -> Self {
        Self {
            has_colours: io::stdout().is_terminal() && has_colours(),
            is_read: true,
        }
    }

    /// Returns whether there is still a reader.
    pub(crate) fn is_read(&self) -> bool {
        self.is_read
    }

    /// Prints a text as it is.
    ///
    /// # Errors
    ///
    /// It cannot be written, for another reason than that its reader has gone.
    pub(crate) fn text(&mut self, text: &str) -> Result<()> {
        let mut stdout = io::stdout().lock();
        match stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.flush())
        {
            // The reader has closed the pipe, as `head` does.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.is_read = false;
                Ok(())
            }
            written => Ok(written?),
        }
    }

    /// Prints lines, in colour on a terminal.
    ///
    /// # Errors
    ///
    /// As of [`text`](Self::text).
    pub(crate) fn lines(&mut self, lines: &[Line]) -> Result<()> {
        let mut text = String::new();
        for line in lines {
            let code = colour(line.tone).filter(|_| self.has_colours);
            match code {
                Some(code) => text.push_str(&format!("\u{1b}[{code}m{}\u{1b}[0m\n", line.text)),
                None => text.push_str(&format!("{}\n", line.text)),
            }
        }
        self.text(&text)
    }

    /// Prints JSON for people.
    ///
    /// # Errors
    ///
    /// As of [`text`](Self::text).
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<()> {
        let text = serde_json::to_string_pretty(value)?;
        self.text(&format!("{text}\n"))
    }

    /// Prints JSON on one line.
    ///
    /// # Errors
    ///
    /// As of [`text`](Self::text).
    pub(crate) fn json_line(&mut self, value: &impl Serialize) -> Result<()> {
        let text = serde_json::to_string(value)?;
        self.text(&format!("{text}\n"))
    }
}

/// Returns whether the user wants colours: <https://no-color.org>.
pub(crate) fn has_colours() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Runs a command to its end or until Ctrl-C.
///
/// # Errors
///
/// Those of the command.
pub(crate) fn run_until_asked(work: impl Future<Output = Result<ExitCode>>) -> Result<ExitCode> {
    let runtime = tokio::runtime::Runtime::new().context("the runtime does not start")?;
    let ended = runtime.block_on(signal::until_asked(work));
    // Names are resolved on threads that would be waited for.
    runtime.shutdown_background();
    ended.unwrap_or(Ok(ExitCode::from(signal::INTERRUPTED)))
}

fn colour(tone: Tone) -> Option<u8> {
    match tone {
        Tone::Plain => None,
        Tone::Strong => Some(1),
        Tone::Dim => Some(2),
        Tone::Bad => Some(31),
        Tone::Good => Some(32),
        Tone::Warn => Some(33),
    }
}
