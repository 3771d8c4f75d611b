//! Sets up logging.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::io::Write;
use std::sync::Arc;

use parking_lot::Mutex;
use tracing::{Dispatch, dispatcher};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry;

use super::error::LoggingError;
use super::filter::{FilterError, LogFilter};
use super::layer::{Format, Lines};
#[cfg(feature = "otlp")]
use super::otlp::{Exporting, Otlp};
use super::output::Output;

/// The environment variable of the format.
const FORMAT_VARIABLE: &str = "LOG_FORMAT";

/// Sets up logging with the default options, for the whole program.
///
/// It is the same as [`Logging::builder()`](Logging::builder)`.init()`.
///
/// # Examples
///
/// ```no_run
/// let _logging = lariat::console::logging::init()?;
/// tracing::info!("starting");
/// # Ok::<(), lariat::console::logging::LoggingError>(())
/// ```
///
/// # Errors
///
/// See [`LoggingBuilder::init`].
pub fn init() -> Result<Logging, LoggingError> {
    Logging::builder().init()
}

/// The handle of logging that was set up.
///
/// Keep it until the end of `main`. Dropping it exports the remaining spans, if spans are exported. It does not end
/// logging.
#[must_use = "dropping it ends the export of spans"]
pub struct Logging {
    filter: LogFilter,
    #[cfg(feature = "otlp")]
    exporting: Option<Exporting>,
}

/// Configures logging.
///
/// ```no_run
/// use lariat::console::logging::{Format, Logging};
///
/// let logging = Logging::builder().filter("info,lariat=debug").format(Format::Json).stdout().init()?;
/// println!("{}", logging.handle().current());
/// # Ok::<(), lariat::console::logging::LoggingError>(())
/// ```
#[must_use]
pub struct LoggingBuilder {
    filter: String,
    /// The variable whose filter replaces `filter`.
    variable: Option<String>,
    format: Option<Format>,
    output: Output,
    coloured: Option<bool>,
    panics: bool,
    #[cfg(feature = "otlp")]
    otlp: Option<Otlp>,
}

impl Logging {
    /// Returns a builder with the default options.
    ///
    /// By default, lines for people are written to stderr. The filter is that of `RUST_LOG`, or else `info`. Panics are
    /// logged.
    pub fn builder() -> LoggingBuilder {
        LoggingBuilder {
            filter: "info".to_owned(),
            variable: Some("RUST_LOG".to_owned()),
            format: None,
            output: Output::Stderr,
            coloured: None,
            panics: true,
            #[cfg(feature = "otlp")]
            otlp: None,
        }
    }

    /// Returns the log filter, to change it while the program runs.
    #[must_use]
    pub fn handle(&self) -> LogFilter {
        self.filter.clone()
    }

    /// Exports the remaining spans, and ends the export; the same as dropping it.
    ///
    /// Log lines are still written. It blocks the thread until the collector has responded, for 5 seconds at most. So
    /// call it at the end of `main`, not in async code.
    pub fn shutdown(self) {
        drop(self);
    }
}

impl LoggingBuilder {
    /// Sets the filter, unless the environment has one (default `info`).
    pub fn filter(mut self, filter: impl Into<String>) -> Self {
        self.filter = filter.into();
        self
    }

    /// Sets the environment variable of the filter (default `RUST_LOG`).
    ///
    /// A filter in the environment takes precedence over [`filter`](Self::filter).
    pub fn filter_variable(mut self, variable: impl Into<String>) -> Self {
        self.variable = Some(variable.into());
        self
    }

    /// Reads no filter from the environment.
    pub fn without_filter_variable(mut self) -> Self {
        self.variable = None;
        self
    }

    /// Sets the format.
    ///
    /// By default it is that of the environment variable `LOG_FORMAT` (`text` or `json`), or else text.
    pub fn format(mut self, format: Format) -> Self {
        self.format = Some(format);
        self
    }

    /// Writes to stdout instead of stderr.
    pub fn stdout(mut self) -> Self {
        self.output = Output::Stdout;
        self
    }

    /// Writes to `writer` instead of stderr, with one call of `write_all` per line.
    ///
    /// Errors are ignored. It is called on the threads that log, so it should be fast.
    pub fn writer(mut self, writer: impl Write + Send + 'static) -> Self {
        self.output = Output::Writer(Arc::new(Mutex::new(writer)));
        self
    }

    /// Sets whether text is coloured.
    ///
    /// By default it is coloured on a terminal, unless `NO_COLOR` is set.
    pub fn colours(mut self, coloured: bool) -> Self {
        self.coloured = Some(coloured);
        self
    }

    /// Sets whether panics are logged instead of printed (default true).
    ///
    /// See [`log_panics`](lariat_controller::log_panics). Panics of handlers are always logged.
    pub fn panics(mut self, are_logged: bool) -> Self {
        self.panics = are_logged;
        self
    }

    /// Exports spans to an OpenTelemetry collector; `None` exports none.
    #[cfg(feature = "otlp")]
    pub fn otlp(mut self, otlp: impl Into<Option<Otlp>>) -> Self {
        self.otlp = otlp.into();
        self
    }

    /// Sets up logging for the whole program.
    ///
    /// # Errors
    ///
    /// The filter or the format cannot be read, spans cannot be exported, or the program already has a subscriber.
    /// Nothing has changed.
    pub fn init(self) -> Result<Logging, LoggingError> {
        // Checked first, so that no thread for the export is started in vain.
        if dispatcher::has_been_set() {
            return Err(LoggingError::AlreadySet);
        }
        let panics = self.panics;
        let (dispatch, logging) = self.build()?;
        // Another thread may have been faster since the check above.
        dispatcher::set_global_default(dispatch).map_err(|_| LoggingError::AlreadySet)?;
        if panics {
            lariat_controller::log_panics();
        }
        Ok(logging)
    }

    /// Creates the subscriber without installing it, for tests.
    ///
    /// `tracing::dispatcher::set_default` installs it for a thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use lariat::console::logging::Logging;
    ///
    /// let (dispatch, logging) = Logging::builder().without_filter_variable().filter("warn").build()?;
    /// tracing::dispatcher::with_default(&dispatch, || tracing::info!("this is filtered out"));
    /// assert_eq!(logging.handle().current(), "warn");
    /// # Ok::<(), lariat::console::logging::LoggingError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// See [`init`](Self::init).
    pub fn build(self) -> Result<(Dispatch, Logging), LoggingError> {
        let filter = self.read_filter(|variable| env::var_os(variable))?;
        let format = self.read_format(|variable| env::var_os(variable))?;
        let lines = Lines::new(self.output, format, self.coloured);
        let subscriber = registry().with(lines.with_filter(filter.clone()));
        #[cfg(feature = "otlp")]
        if let Some(otlp) = self.otlp {
            let (layer, exporting) = otlp.begin()?;
            let logging = Logging {
                filter,
                exporting: Some(exporting),
            };
            return Ok((subscriber.with(layer).into(), logging));
        }
        let logging = Logging {
            filter,
            #[cfg(feature = "otlp")]
            exporting: None,
        };
        Ok((subscriber.into(), logging))
    }

    fn read_filter(
        &self,
        env: impl Fn(&str) -> Option<OsString>,
    ) -> Result<LogFilter, LoggingError> {
        let set = self.variable.as_deref().and_then(|variable| {
            // A value that is not UTF-8 leads to an error that shows it as far as possible.
            let text = env(variable)?.to_string_lossy().into_owned();
            // An empty variable counts as not set, as in `env_logger`.
            (!text.trim().is_empty()).then(|| (variable.to_owned(), text))
        });
        let (variable, text) = match set {
            Some((variable, text)) => (Some(variable), text),
            None => (None, self.filter.clone()),
        };
        text.parse()
            .map_err(|source: FilterError| LoggingError::Filter { variable, source })
    }

    fn read_format(&self, env: impl Fn(&str) -> Option<OsString>) -> Result<Format, LoggingError> {
        let set = env(FORMAT_VARIABLE).filter(|_| self.format.is_none());
        let text = set.map(|text| text.to_string_lossy().trim().to_ascii_lowercase());
        match text.as_deref() {
            None | Some("") => Ok(self.format.unwrap_or_default()),
            Some("text") => Ok(Format::Text),
            Some("json") => Ok(Format::Json),
            Some(format) => Err(LoggingError::Format {
                variable: FORMAT_VARIABLE.to_owned(),
                format: format.to_owned(),
            }),
        }
    }
}

impl fmt::Debug for Logging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Logging");
        debug.field("filter", &self.filter.current());
        #[cfg(feature = "otlp")]
        debug.field("exports", &self.exporting.is_some());
        debug.finish()
    }
}

impl fmt::Debug for LoggingBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoggingBuilder")
            .field("filter", &self.filter)
            .field("variable", &self.variable)
            .field("format", &self.format)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use lariat_core::describe;

    use super::*;

    fn set(text: &'static str) -> impl Fn(&str) -> Option<OsString> {
        move |_| Some(text.into())
    }

    #[test]
    fn the_environment_takes_precedence() {
        let options = Logging::builder().filter("warn");
        let filter = |env: &'static str| options.read_filter(set(env)).map(|it| it.current());
        assert_eq!(filter("debug").unwrap(), "debug");
        assert_eq!(filter(" ").unwrap(), "warn");
        assert_eq!(options.read_filter(|_| None).unwrap().current(), "warn");
        let options = options.without_filter_variable();
        assert_eq!(options.read_filter(set("debug")).unwrap().current(), "warn");
    }

    #[test]
    fn errors_name_the_variable() {
        let options = Logging::builder().filter_variable("SHOP_LOG");
        let error = options.read_filter(set("lariat=loud")).unwrap_err();
        assert_eq!(
            describe(&error),
            "the filter of the environment variable SHOP_LOG cannot be read: `lariat=loud` has the unknown level `loud`; \
            levels are off, error, warn, info, debug, trace; an example of a filter is `info,lariat_cache=debug`"
        );
        let error = Logging::builder()
            .filter("inof")
            .without_filter_variable()
            .build()
            .err();
        let error = describe(&error.unwrap());
        assert!(
            error.starts_with("the filter of the log cannot be read: `inof`"),
            "{error}"
        );
    }

    #[test]
    fn the_format_is_set_or_comes_from_the_environment() {
        let options = Logging::builder();
        assert_eq!(options.read_format(|_| None).unwrap(), Format::Text);
        assert_eq!(options.read_format(set("JSON")).unwrap(), Format::Json);
        let error = options.read_format(set("xml")).unwrap_err().to_string();
        assert_eq!(
            error,
            "the environment variable LOG_FORMAT has the format `xml`; write `text` or `json`"
        );
        let options = options.format(Format::Json);
        assert_eq!(options.read_format(set("xml")).unwrap(), Format::Json);
    }
}
