//! The timeline: one line for each entry.

use std::io::{self, Write};
use std::time::SystemTime;

use jiff::Timestamp;
use lariat_flight::{EntryBody, Recording, RecordingEntry, Session};

use super::filter::{Filter, kind_of, short};
use super::words::Words;

/// The colours of a terminal.
struct Colours {
    dim: &'static str,
    bad: &'static str,
    bold: &'static str,
    off: &'static str,
}

const NONE: Colours = Colours {
    dim: "",
    bad: "",
    bold: "",
    off: "",
};

const SOME: Colours = Colours {
    dim: "\x1b[2m",
    bad: "\x1b[31m",
    bold: "\x1b[1m",
    off: "\x1b[0m",
};

/// Writes the entries that are wanted, and what the sessions are.
pub(super) fn write(
    recording: &Recording,
    filter: &Filter<'_>,
    has_colours: bool,
    to: &mut impl Write,
) -> io::Result<()> {
    let colours = if has_colours { SOME } else { NONE };
    let entries = || recording.entries().filter(|entry| filter.wants(entry));
    // A first pass over the entries finds the width of the column.
    let kinds = entries().filter_map(|entry| Some(short(kind(&entry)?).len()));
    let width = kinds.max().unwrap_or(0).max("factory".len());
    // A recording has up to millions of lines, and standard output is written at each of them otherwise.
    let mut to = io::BufWriter::new(to);
    let mut session = None;
    for entry in entries() {
        if session != Some(entry.session.number) {
            let Colours { bold, off, .. } = colours;
            let title = title(&entry.session);
            let gap = if session.is_some() { "\n" } else { "" };
            writeln!(to, "{gap}{bold}{title}{off}")?;
            session = Some(entry.session.number);
        }
        write_entry(&entry, filter, width, &colours, &mut to)?;
    }
    if session.is_none() {
        writeln!(to, "nothing in the recording is like that")?;
    }
    to.flush()
}

fn write_entry(
    entry: &RecordingEntry<'_>,
    filter: &Filter<'_>,
    width: usize,
    colours: &Colours,
    to: &mut impl Write,
) -> io::Result<()> {
    let words = Words {
        filter,
        session: entry.session.number,
    };
    let Some(line) = words.of(&entry.body) else {
        return Ok(());
    };
    let Colours { dim, bad, off, .. } = colours;
    let (after, clock) = (
        format!("+{:.6}s", entry.at.as_secs_f64()),
        clock(entry.session.began + entry.at),
    );
    let kind = match &entry.body {
        EntryBody::Record(_) => kind(entry).map_or("factory", short),
        _ => "",
    };
    let (bad, end) = if line.is_bad { (*bad, *off) } else { ("", "") };
    let text = &line.text;
    writeln!(
        to,
        "{dim}{clock} {after:>15}{off}  {kind:width$}  {bad}{text}{end}"
    )
}

fn kind<'a>(entry: &RecordingEntry<'a>) -> Option<&'a str> {
    match &entry.body {
        EntryBody::Record(record) => kind_of(record),
        _ => None,
    }
}

/// Returns what a session is.
pub(super) fn title(session: &Session<'_>) -> String {
    let Session {
        number,
        began,
        process,
        version,
    } = session;
    let began = date(*began);
    format!("session {number}: process {process}, Lariat {version}, first record {began}")
}

/// Returns a time with its date, in UTC.
pub(super) fn date(time: SystemTime) -> String {
    let format = |time: Timestamp| time.strftime("%Y-%m-%d %H:%M:%S%.3f UTC").to_string();
    Timestamp::try_from(time).map_or_else(|_| "(unknown)".to_owned(), format)
}

fn clock(time: SystemTime) -> String {
    let format = |time: Timestamp| time.strftime("%H:%M:%S%.3f").to_string();
    Timestamp::try_from(time).map_or_else(|_| "(unknown)".to_owned(), format)
}
