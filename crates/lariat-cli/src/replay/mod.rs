//! `lariat replay`: what a flight recorder recorded.

mod check;
mod filter;
mod summary;
mod timeline;
mod when;
mod words;

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use lariat_flight::Recording;

use filter::Filter;
pub(crate) use when::When;

/// What the process ends with when today's code decides otherwise.
const DIFFERENCE: u8 = 3;

/// The options of `lariat replay`.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Options {
    pub(crate) file: PathBuf,
    pub(crate) show: Show,
    pub(crate) kind: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) handler: Option<String>,
    pub(crate) since: Option<When>,
    pub(crate) until: Option<When>,
}

/// What is shown.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Show {
    #[default]
    Timeline,
    Summary,
    Check,
}

/// Reads the file and shows it.
pub(crate) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let recording = Recording::read(&options.file)?;
    let filter = Filter::new(options, &recording);
    let mut stdout = io::stdout().lock();
    let has_colours = stdout.is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let shown = match options.show {
        Show::Timeline => timeline::write(&recording, &filter, has_colours, &mut stdout),
        Show::Summary => stdout.write_all(summary::text(&recording, &filter).as_bytes()),
        Show::Check => {
            let report = check::check(&recording, &filter);
            let mut text = String::new();
            let _ = write!(text, "{report}");
            stdout.write_all(text.as_bytes())?;
            stdout.flush()?;
            return Ok(match report.is_equal() {
                true => ExitCode::SUCCESS,
                false => ExitCode::from(DIFFERENCE),
            });
        }
    };
    match shown.and_then(|()| stdout.flush()) {
        // A pager that was closed has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        shown => Ok(shown.map(|()| ExitCode::SUCCESS)?),
    }
}
