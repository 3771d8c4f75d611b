//! Colours and messages.

use std::env;
use std::fmt;
use std::io::{IsTerminal, Write, stdout};
use std::process::ExitCode;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;
use tracing::Level;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{FilterExt, Targets, dynamic_filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use super::remember;

/// A colour of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    /// For less important text.
    Dim,
    /// For headings.
    Bold,
    /// For success.
    Green,
    /// For changes.
    Yellow,
    /// For failures.
    Red,
    /// For names.
    Cyan,
    /// For what the program itself does.
    Magenta,
}

/// Whether to colour: on a terminal, unless `NO_COLOR` is set; always with `CLICOLOR_FORCE`.
static COLOURED: LazyLock<bool> = LazyLock::new(|| {
    let set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
    set("CLICOLOR_FORCE") || (stdout().is_terminal() && !set("NO_COLOR"))
});

/// Colours a text, padded to a width first, so that columns stay in line.
#[must_use]
pub fn paint(paint: Paint, text: impl fmt::Display, width: usize) -> String {
    let text = format!("{:<width$}", text.to_string());
    if !*COLOURED {
        return text;
    }
    let code = match paint {
        Paint::Bold => 1,
        Paint::Dim => 2,
        Paint::Red => 31,
        Paint::Green => 32,
        Paint::Yellow => 33,
        Paint::Magenta => 35,
        Paint::Cyan => 36,
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}

/// Notified when the output is closed.
static CLOSED: Notify = Notify::const_new();

/// Prints a line. If the output is closed (`| head`), it does not panic: see `output_closed`.
pub fn say(line: impl fmt::Display) {
    if writeln!(stdout(), "{line}").is_err() {
        CLOSED.notify_one();
    }
}

/// Prints what was done to an object: kind, name, and action. [`until_printed`](super::until_printed) waits for it.
pub fn print_action(kind: &str, name: impl fmt::Display, colour: Paint, what: impl fmt::Display) {
    let line = format!("{kind} {name} {what}");
    let (kind, name) = (paint(Paint::Dim, kind, 12), paint(Paint::Cyan, name, 20));
    say(format_args!("  {kind} {name} {}", paint(colour, what, 0)));
    remember(line);
}

/// Waits until a line could not be printed.
pub(super) async fn output_closed() {
    CLOSED.notified().await;
}

/// Whether logging is suppressed now.
static HUSHED: AtomicBool = AtomicBool::new(false);

/// Suppresses Lariat's log, or prints it again: for an example whose handlers fail often.
pub fn hush(quiet: bool) {
    HUSHED.store(quiet, Ordering::Relaxed);
}

/// Prints the errors that Lariat logs, and when a cache is behind; with `LARIAT_LOG=warn` (or `info`, `debug`) more of
/// it.
pub fn log_errors() {
    let level: Option<Level> = env::var("LARIAT_LOG")
        .ok()
        .and_then(|level| level.parse().ok());
    let ours = match level {
        Some(level) => Targets::new().with_target("lariat", level),
        None => Targets::new()
            .with_target("lariat", Level::ERROR)
            .with_target("lariat_cache", Level::WARN),
    };
    let ours = ours.and(dynamic_filter_fn(|_, _| !HUSHED.load(Ordering::Relaxed)));
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(*COLOURED)
        .with_target(false)
        .without_time();
    tracing_subscriber::registry()
        .with(lines.compact().with_filter(ours))
        .init();
}

/// Prints an error as one line, each cause once, and returns the exit code.
#[must_use]
pub fn exit_code(outcome: &anyhow::Result<()>) -> ExitCode {
    let Err(error) = outcome else {
        return ExitCode::SUCCESS;
    };
    let text = lariat::describe(&**error);
    eprintln!("{} {text}", paint(Paint::Red, "error:", 0));
    ExitCode::FAILURE
}
