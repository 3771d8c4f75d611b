//! The output of a recording.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use lariat_flight::Recording;

use super::filter::Filter;
use super::options::{Options, Show};
use super::{check, summary, timeline};

/// The exit code when today's code decides differently.
const DIFFERENCE: u8 = 3;

/// Reads the file and shows it.
pub(crate) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let recording = Recording::read(&options.file)?;
    // It reads the whole recording once, since names of handlers may come after their lanes.
    let filter = Filter::new(options, &recording);
    let mut stdout = io::stdout().lock();
    let has_colours =
        stdout.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let shown = match options.show() {
        Show::Timeline => timeline::write(&recording, &filter, has_colours, &mut stdout),
        Show::Summary => stdout.write_all(summary::text(&recording, &filter).as_bytes()),
        Show::Check => {
            let report = check::check(&recording, &filter);
            let mut text = String::new();
            let _ = write!(text, "{report}");
            stdout.write_all(text.as_bytes())?;
            stdout.flush()?;
            return Ok(if report.is_equal() {
                ExitCode::SUCCESS
            } else {
                ExitCode::from(DIFFERENCE)
            });
        }
    };
    match shown.and_then(|()| stdout.flush()) {
        // A pager that was closed has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        shown => Ok(shown.map(|()| ExitCode::SUCCESS)?),
    }
}
