//! Records where a handler panicked, with a backtrace.
//!
//! A panic hook sees every panic of the process. For a panic in a handler, it stores location and backtrace in a thread
//! local, from which the code that catches the panic takes them.

use std::any::Any;
use std::backtrace::Backtrace;
use std::cell::Cell;
use std::ffi::OsStr;
use std::future::{Future, poll_fn};
use std::panic::{self, PanicHookInfo};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Once, OnceLock};
use std::task::Context;
use std::thread;
use std::time::Duration;

use lariat_core::{clock, without_credentials};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::current;

thread_local! {
    /// The last panic of a handler on this thread, until it is taken.
    static LAST: Cell<Option<Panicked>> = const { Cell::new(None) };
}

/// The panic of a handler.
#[derive(Debug)]
pub(crate) struct Panicked {
    /// File, line and column.
    pub(crate) at: String,
    text: String,
    backtrace: Option<Backtrace>,
    /// Whether the previous panic hook was called, which usually prints the panic.
    is_shown: bool,
}

/// The value of `RUST_BACKTRACE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    Off,
    /// Backtraces without the frames of the runtime and of Lariat.
    Short,
    Full,
}

type Hook = Box<dyn Fn(&PanicHookInfo<'_>) + Send + Sync>;

/// The least time between two backtraces, since resolving one takes milliseconds.
const BACKTRACE_PAUSE: Duration = Duration::from_secs(1);

/// Takes the last panic of a handler on this thread.
pub(crate) fn take() -> Option<Panicked> {
    LAST.take()
}

/// Runs a handler's call, and reports panics that the handler catches itself.
///
/// The hook may have suppressed the printing of such a panic, so it would be reported nowhere else.
pub(crate) async fn noting<T>(call: impl Future<Output = T>, caught: impl Fn(Panicked)) -> T {
    let mut call = pin!(call);
    let poll = |cx: &mut Context<'_>| {
        let poll = call.as_mut().poll(cx);
        // A panic that ends the call unwinds past this line, and is taken where it is caught. Taken after each poll,
        // because the task may continue on another thread.
        take().into_iter().for_each(&caught);
        poll
    };
    poll_fn(poll).await
}

/// Returns the message of a panic.
pub(crate) fn message(panic: &dyn Any) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("(no message)")
}

impl Panicked {
    /// Logs a panic that a handler caught itself, unless a hook has printed it.
    pub(crate) fn log_caught(self) {
        if !self.is_shown {
            let (at, backtrace) = (&self.at, self.backtrace());
            let backtrace = backtrace.as_ref().map(tracing::field::display);
            tracing::error!(%at, backtrace, "panic caught inside a handler call: {}", self.text);
        }
    }

    /// Logs a panic outside of calls.
    fn log(&self) {
        let (at, backtrace) = (&self.at, self.backtrace());
        let backtrace = backtrace.as_ref().map(tracing::field::display);
        let thread = thread::current();
        let thread = thread.name();
        tracing::error!(%at, thread, backtrace, "panicked: {}", self.text);
    }

    /// Returns the backtrace as text, if there is one.
    pub(crate) fn backtrace(&self) -> Option<String> {
        let text = self.backtrace.as_ref()?.to_string();
        Some(match style() {
            Style::Full => text,
            _ => trimmed(&text),
        })
    }
}

/// Whether panics outside of calls are logged too.
static LOGS_ALL: AtomicBool = AtomicBool::new(false);

/// Logs all panics of the program, instead of printing them on stderr.
///
/// Each panic is one error in the log, with its location and, if `RUST_BACKTRACE` is set, a backtrace. Panics of
/// handlers are always logged, with the failure of their call; call this for those of all other code. Panics are still
/// printed if the program has set a panic hook of its own, and while nothing logs errors.
///
/// ```
/// lariat::log_panics();
/// ```
pub fn log_panics() {
    LOGS_ALL.store(true, Ordering::Relaxed);
    note();
}

/// Installs the panic hook that records panics of handlers, once per process.
///
/// If no custom hook was set and errors are logged, such panics are not printed as well. Other panics are printed as
/// before, and a custom hook is always called.
pub(crate) fn note() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Taking a hook installs the standard one, so the second call returns the standard hook.
        let (before, standard) = (panic::take_hook(), panic::take_hook());
        let is_standard = is_same(&before, &standard);
        panic::set_hook(Box::new(move |info| {
            let is_in_call = current::is_in_call();
            let is_ours = is_in_call || LOGS_ALL.load(Ordering::Relaxed);
            // A custom hook is always called: it may report to a crash service.
            let is_shown = !(is_ours && is_standard && tracing::enabled!(tracing::Level::ERROR));
            if is_in_call {
                LAST.set(Some(look_at(info, is_shown)));
            } else if !is_shown {
                look_at(info, is_shown).log();
            }
            if is_shown {
                before(info);
            }
        }));
    });
}

/// Describes a panic, from inside the hook.
fn look_at(info: &PanicHookInfo<'_>, is_shown: bool) -> Panicked {
    let at = info.location().map(ToString::to_string);
    Panicked {
        at: at.unwrap_or_default(),
        text: without_credentials(message(info.payload())).into_owned(),
        backtrace: (style() != Style::Off && is_time()).then(Backtrace::force_capture),
        is_shown,
    }
}

/// Returns whether a backtrace may be taken, and counts it if so.
fn is_time() -> bool {
    // In a simulation, the log of a seed must be the same each time, whatever other simulations of the process do.
    if clock::is_simulated() {
        return true;
    }
    static LAST: Mutex<Option<Instant>> = Mutex::new(None);
    let mut last = LAST.lock();
    let now = Instant::now();
    // Each runtime with paused time has a clock of its own. A time that is in the future here counts as long ago.
    let is_recent = |at: Instant| {
        let ago = now.checked_duration_since(at);
        ago.is_some_and(|ago| ago < BACKTRACE_PAUSE)
    };
    let is_time = !last.is_some_and(is_recent);
    if is_time {
        *last = Some(now);
    }
    is_time
}

/// Returns whether two hooks are the same function without state.
///
/// The standard hook is such a function. The second of two hooks that `take_hook` returns in a row is always the
/// standard hook, so it serves for the comparison.
fn is_same(one: &Hook, other: &Hook) -> bool {
    std::ptr::eq(&raw const **one, &raw const **other)
}

/// Returns the style set in the environment, which is read once, as std does.
fn style() -> Style {
    static STYLE: OnceLock<Style> = OnceLock::new();
    *STYLE.get_or_init(|| Style::of(std::env::var_os("RUST_BACKTRACE").as_deref()))
}

impl Style {
    fn of(variable: Option<&OsStr>) -> Self {
        match variable.map(OsStr::to_str) {
            None | Some(Some("0")) => Self::Off,
            Some(Some("full")) => Self::Full,
            Some(_) => Self::Short,
        }
    }
}

/// Names of frames between the hook and the code that panicked.
const ABOVE: [&str; 6] = [
    "std::panicking::",
    "core::panicking::",
    "std::sys::backtrace::",
    "rust_begin_unwind",
    "core::result::unwrap_failed",
    "core::option::",
];

/// Names of frames between the worker and the handler.
///
/// Without full debug information these frames have other names; then their files identify them.
const BELOW: [&str; 3] = [
    "lariat_controller::handler::handler::Viewed<",
    "lariat_controller::handler::call::",
    "lariat_controller::controller::guard::",
];

/// The folder of this crate, as a package and in a checkout.
const FOLDERS: [&str; 2] = ["lariat-controller-", "crates/controller/src/"];

/// The files of these frames, in the folder of the crate.
const BELOW_FILES: [&str; 3] = [
    "/src/handler/handler.rs:",
    "/src/handler/call.rs:",
    "/src/controller/guard.rs:",
];

/// Returns the frames between the panic and the worker.
fn trimmed(backtrace: &str) -> String {
    let is_frame = |line: &str| {
        let number = line.trim_start().split_once(": ");
        number.is_some_and(|(number, _)| number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let mut frames: Vec<Vec<&str>> = Vec::new();
    for line in backtrace.lines() {
        match frames.last_mut() {
            Some(frame) if !is_frame(line) => frame.push(line),
            _ => frames.push(vec![line]),
        }
    }
    let has = |frame: &[&str], names: &[&str]| names.iter().any(|name| frame[0].contains(name));
    // Only the leading ones: such frames also occur further down, where the runtime catches panics.
    let hook = frames.iter().position(|frame| has(frame, &ABOVE));
    let begin = hook.map_or(0, |hook| {
        let rest = frames[hook..].iter();
        hook + rest.take_while(|frame| has(frame, &ABOVE)).count()
    });
    let is_below = |frame: &Vec<&str>| {
        let file = frame
            .get(1)
            .filter(|file| FOLDERS.iter().any(|folder| file.contains(folder)));
        has(frame, &BELOW)
            || file.is_some_and(|file| BELOW_FILES.iter().any(|each| file.contains(each)))
    };
    let length = frames[begin..].iter().position(is_below);
    let end = length.map_or(frames.len(), |length| begin + length);
    frames[begin..end].concat().join("\n")
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn backtraces_are_as_the_environment_says() {
        let style = |text: &str| Style::of(Some(OsStr::new(text)));
        assert_eq!(Style::of(None), Style::Off);
        assert_eq!(style("0"), Style::Off);
        assert_eq!(style("1"), Style::Short);
        assert_eq!(style("full"), Style::Full);
    }

    #[test]
    fn a_short_backtrace_has_the_frames_of_the_program() {
        let text = "   0: <std::backtrace::Backtrace>::force_capture\n             at /rustc/lib.rs:1:1\n   \
            1: lariat_controller::panics::look_at\n   2: std::panicking::panic_with_hook\n             \
            at /rustc/x.rs:1:1\n   \
            3: core::panicking::panic_fmt\n   4: app::work\n             at ./src/main.rs:7:9\n   \
            5: app::main::{{closure}}\n   6: <lariat_controller::handler::handler::Viewed<K,H> as X>::handle\n   \
            7: std::panicking::catch_unwind\n   8: tokio::runtime::task::raw::poll\n";
        assert_eq!(
            trimmed(text),
            "   4: app::work\n             at ./src/main.rs:7:9\n   5: app::main::{{closure}}"
        );
        assert_eq!(trimmed("no frames"), "no frames");
        let text = "   0: std::panicking::panic\n   1: {async_fn#0}\n             at ./src/handler/call.rs:7:9\n   \
            2: {async_block#0}<app::f>\n             at /x/lariat-controller-0.1.0/src/handler/handler.rs:89:71\n   \
            3: {async_fn#0}\n             at /x/lariat-controller-0.1.0/src/handler/call.rs:218:44\n";
        let expected = "   1: {async_fn#0}\n             at ./src/handler/call.rs:7:9";
        assert_eq!(trimmed(text), expected);
        let of_checkout = text.replace("/x/lariat-controller-0.1.0/", "./crates/controller/");
        assert_eq!(trimmed(&of_checkout), expected);
    }

    #[test]
    fn in_a_simulation_it_is_always_time_for_a_backtrace() {
        let _simulated = clock::simulate(|| SystemTime::UNIX_EPOCH);
        assert!(is_time() && is_time());
    }

    #[tokio::test]
    async fn a_panic_that_a_call_catches_itself_is_reported_after_the_poll() {
        let panicked = || {
            LAST.set(Some(Panicked {
                at: "here".to_owned(),
                text: "oh no".to_owned(),
                backtrace: None,
                is_shown: false,
            }));
        };
        let caught = Cell::new(0);
        let call = async {
            panicked();
            tokio::task::yield_now().await;
            assert_eq!(caught.get(), 1);
            panicked();
        };
        noting(call, |_| caught.set(caught.get() + 1)).await;
        assert_eq!(caught.get(), 2);
        assert!(take().is_none());
    }

    #[test]
    fn the_standard_hook_is_known_by_its_address() {
        let before = panic::take_hook();
        let (one, other) = (panic::take_hook(), panic::take_hook());
        let own: Hook = Box::new(|_| {});
        let found = (is_same(&one, &other), is_same(&own, &other));
        panic::set_hook(before);
        assert_eq!(found, (true, false));
    }
}
