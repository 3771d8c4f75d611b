//! Formats a line for people.

use std::fmt::{self, Write};

use jiff::Timestamp;
use serde_json::Value;
use tracing::Level;

use super::fields::{About, Record};

/// Fields with a fixed place in a line.
const PLACED: [&str; 5] = ["message", "kind", "key", "handler", "error"];

/// Fields of Lariat's spans that are shown at debug and trace level only.
const DETAILS: [&str; 6] = [
    "run",
    "attempt",
    "method",
    "namespace",
    "subresource",
    "dry_run",
];

/// Escape sequences of a terminal.
#[derive(Debug, Clone, Copy)]
enum Paint {
    Dim,
    Bold,
    Red,
    Green,
    Yellow,
    Blue,
    Cyan,
}

/// Returns the line of an event, without its end.
///
/// A backtrace follows on lines of its own.
pub(super) fn line(record: &Record<'_>, now: Timestamp, coloured: bool) -> String {
    let mut line = Line {
        text: String::with_capacity(120),
        coloured,
        has_fields: false,
    };
    line.write(record, now);
    line.text
}

/// A line that is being written.
struct Line {
    text: String,
    coloured: bool,
    /// Whether a field was written. The first one is preceded by two spaces.
    has_fields: bool,
}

impl Line {
    fn write(&mut self, record: &Record<'_>, now: Timestamp) {
        let level = *record.metadata.level();
        // Without the date, which a log collector adds.
        let time = format!("{now:.3}");
        // `2026-01-01T` has eleven characters.
        self.paint(Paint::Dim, time.get(11..).unwrap_or(&time));
        let paint = match level {
            Level::ERROR => Paint::Red,
            Level::WARN => Paint::Yellow,
            Level::INFO => Paint::Green,
            Level::DEBUG => Paint::Blue,
            Level::TRACE => Paint::Dim,
        };
        self.text.push(' ');
        self.paint(paint, format_args!("{level:<5}"));
        self.text.push(' ');
        let is_detailed = level >= Level::DEBUG;
        self.origin(record.metadata.target(), level);
        self.about(&record.about());
        self.message(record, level);
        for (name, value) in record.fields.iter() {
            self.field(name, value);
        }
        for span in record.spans {
            let is_ours = span.is_ours();
            let fields = span.fields.iter();
            // Kind, key and handler of Lariat's spans are in `about`.
            let is_shown = |name: &str| !is_ours || is_detailed && DETAILS.contains(&name);
            // A field that the event has too is shown once.
            // Fields of a program's own spans are always shown: nothing else in the line says what they say.
            fields
                .filter(|(name, _)| is_shown(name) && record.fields.get(name).is_none())
                .for_each(|(name, value)| self.field(name, value));
        }
        if let Some(backtrace) = record.fields.text("backtrace") {
            for frame in backtrace.lines() {
                let _ = write!(self.text, "\n    {}", Printable(frame));
            }
        }
    }

    /// Writes the origin of the line, in more detail at lower levels.
    ///
    /// That is the module at trace level, the crate at debug level, and otherwise the crate if it is not Lariat's.
    fn origin(&mut self, target: &str, level: Level) {
        let krate = target.split("::").next().unwrap_or_default();
        let shown = match level {
            Level::TRACE => target,
            Level::DEBUG => krate,
            _ if krate.starts_with("lariat") => return,
            _ => krate,
        };
        self.paint(Paint::Dim, format_args!("{}: ", Printable(shown)));
    }

    fn about(&mut self, about: &About<'_>) {
        // The text is `group/version Kind`; only the kind is shown.
        let kind = about
            .kind
            .map(|kind| kind.rsplit(' ').next().unwrap_or(kind));
        let mut gap = "";
        if let Some(kind) = kind {
            let _ = write!(self.text, "{}", Printable(kind));
            gap = " ";
        }
        if let Some(key) = about.key {
            self.text.push_str(gap);
            self.paint(Paint::Cyan, Printable(key));
            gap = " ";
        }
        if let Some(handler) = about.handler {
            self.text.push_str(gap);
            self.paint(Paint::Dim, format_args!("({})", Printable(handler)));
            gap = " ";
        }
        if !gap.is_empty() {
            // Only after an object or a handler: the message of other lines follows the origin directly.
            self.text.push_str(": ");
        }
    }

    fn message(&mut self, record: &Record<'_>, level: Level) {
        let message = record.fields.text("message").unwrap_or_default();
        if level <= Level::WARN && self.coloured {
            self.paint(Paint::Bold, Printable(message));
        } else {
            let _ = write!(self.text, "{}", Printable(message));
        }
        if let Some(error) = record.fields.get("error") {
            let gap = if message.is_empty() { "" } else { ": " };
            self.text.push_str(gap);
            let _ = match error {
                Value::String(error) => write!(self.text, "{}", Printable(error)),
                other => write!(self.text, "{other}"),
            };
        }
    }

    fn field(&mut self, name: &str, value: &Value) {
        if PLACED.contains(&name) || name == "backtrace" {
            return;
        }
        let gap = if self.has_fields { " " } else { "  " };
        self.has_fields = true;
        self.paint(Paint::Dim, format_args!("{gap}{name}="));
        let _ = match value {
            // Quoted, so that fields can be distinguished.
            Value::String(text) if text.is_empty() || text.contains([' ', '"', '=']) => {
                write!(self.text, "{text:?}")
            }
            Value::String(text) => write!(self.text, "{}", Printable(text)),
            other => write!(self.text, "{other}"),
        };
    }

    fn paint(&mut self, paint: Paint, text: impl fmt::Display) {
        let code = match paint {
            Paint::Bold => 1,
            Paint::Dim => 2,
            Paint::Red => 31,
            Paint::Green => 32,
            Paint::Yellow => 33,
            Paint::Blue => 34,
            Paint::Cyan => 36,
        };
        let _ = if self.coloured {
            write!(self.text, "\x1b[{code}m{text}\x1b[0m")
        } else {
            write!(self.text, "{text}")
        };
    }
}

/// A text with its control characters escaped.
///
/// Unescaped, they could forge lines or control the terminal.
struct Printable<'a>(&'a str);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.contains(char::is_control) {
            return f.write_str(self.0);
        }
        self.0.chars().try_for_each(|letter| match letter {
            letter if letter.is_control() => write!(f, "{}", letter.escape_default()),
            letter => f.write_char(letter),
        })
    }
}
