//! The log filter, which can be changed while the program runs.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use parking_lot::RwLock;
use tracing::level_filters::LevelFilter;
use tracing::subscriber::Interest;
use tracing::{Metadata, Subscriber, callsite};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, Filter};

/// The log filter of a program. Clones share it.
///
/// It has the syntax of `RUST_LOG`: directives separated by commas. A directive is a level, or a target with its level.
/// A directive for a target applies to all targets that begin with it; the longest one decides. A level alone applies
/// to all other targets; without one, they log nothing. Levels are `off`, `error`, `warn`, `info`, `debug` and `trace`.
/// Directives for spans and fields, in brackets, are not supported, because checking them would cost time in each call.
///
/// The target `kube_client::client` logs at debug level only if a directive names it or `kube_client`: at that level,
/// kube quotes requests that the API server refuses, which may contain a Secret.
///
/// It is a [`Filter`] of `tracing-subscriber`, so programs with a subscriber of their own can use it too.
///
/// ```
/// use lariat::console::logging::LogFilter;
///
/// let filter: LogFilter = "info,lariat::write=trace".parse()?;
/// filter.set("warn")?;
/// assert_eq!(filter.current(), "warn");
///
/// let error = filter.set("warn,lariat_cache=debgu").unwrap_err();
/// assert_eq!(error.directive(), "lariat_cache=debgu");
/// assert_eq!(filter.current(), "warn");
/// # Ok::<(), lariat::console::logging::FilterError>(())
/// ```
#[derive(Clone)]
pub struct LogFilter(Arc<RwLock<InForce>>);

/// The current filter.
struct InForce {
    text: String,
    targets: Targets,
}

/// The error of a filter that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{directive}` {problem}; an example of a filter is `{EXAMPLE}`")]
pub struct FilterError {
    directive: String,
    problem: String,
}

/// The target at which kube logs refusals of the API server, at debug level.
///
/// They may quote the request, such as a Secret.
const QUOTING: &str = "kube_client::client";

const EXAMPLE: &str = "info,lariat_cache=debug";

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

impl LogFilter {
    /// Returns the current filter, as it was set.
    #[must_use]
    pub fn current(&self) -> String {
        self.0.read().text.clone()
    }

    /// Replaces the filter.
    ///
    /// The new filter applies to everything that is logged afterwards, on all threads.
    ///
    /// ```
    /// use lariat::console::logging::LogFilter;
    ///
    /// let filter: LogFilter = "info".parse()?;
    /// let clone = filter.clone();
    /// clone.set("debug,hyper=warn")?;
    /// assert_eq!(filter.current(), "debug,hyper=warn");
    /// # Ok::<(), lariat::console::logging::FilterError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The text is not a filter. The previous filter is kept.
    pub fn set(&self, text: &str) -> Result<(), FilterError> {
        let filter = InForce::read(text)?;
        *self.0.write() = filter;
        // Callsites cache whether they are enabled. Rebuilding the cache calls the filter, so its lock must be free by
        // now.
        callsite::rebuild_interest_cache();
        Ok(())
    }
}

impl FromStr for LogFilter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        Ok(Self(Arc::new(RwLock::new(InForce::read(text)?))))
    }
}

impl<S: Subscriber> Filter<S> for LogFilter {
    fn enabled(&self, metadata: &Metadata<'_>, context: &Context<'_, S>) -> bool {
        Filter::enabled(&self.0.read().targets, metadata, context)
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        Filter::<S>::callsite_enabled(&self.0.read().targets, metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Filter::<S>::max_level_hint(&self.0.read().targets)
    }
}

impl fmt::Debug for LogFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LogFilter").field(&self.current()).finish()
    }
}

impl FilterError {
    fn new(directive: &str, problem: impl Into<String>) -> Self {
        Self {
            directive: directive.to_owned(),
            problem: problem.into(),
        }
    }

    /// Returns the directive that cannot be read; empty if the filter has none.
    ///
    /// ```
    /// use lariat::console::logging::LogFilter;
    ///
    /// let error = "info,demo=loud".parse::<LogFilter>().unwrap_err();
    /// assert_eq!(error.directive(), "demo=loud");
    /// ```
    #[must_use]
    pub fn directive(&self) -> &str {
        &self.directive
    }
}

impl InForce {
    fn read(text: &str) -> Result<Self, FilterError> {
        let directives = text.split(',').map(str::trim);
        let mut directives = directives.filter(|each| !each.is_empty()).peekable();
        if directives.peek().is_none() {
            return Err(FilterError::new(
                "",
                "has no directive; to log nothing, use `off`",
            ));
        }
        let mut targets = directives.try_fold(Targets::new(), with_directive)?;
        // Unless the user names kube's target, its debug level stays off, whatever the level for all targets is.
        let is_named = targets
            .iter()
            .any(|(target, _)| QUOTING.starts_with(target));
        if let Some(level) = targets.default_level().filter(|_| !is_named) {
            // The smaller level is the less verbose one, so `off` and `error` stay as they are.
            targets = targets.with_target(QUOTING, level.min(LevelFilter::INFO));
        }
        Ok(Self {
            text: text.trim().to_owned(),
            targets,
        })
    }
}

fn with_directive(targets: Targets, directive: &str) -> Result<Targets, FilterError> {
    let wrong = |problem: String| FilterError::new(directive, problem);
    if directive.contains(['[', ']', '{', '}']) {
        // `Targets` would take the brackets for a part of the target, and the directive would never match.
        let problem = "filters by span or field, which is not supported";
        return Err(wrong(problem.to_owned()));
    }
    let Some((target, level)) = directive.split_once('=') else {
        if let Some(level) = level_of(directive) {
            return Ok(targets.with_default(level));
        }
        // A misspelt level would be a valid target, and silently log nothing else.
        if let Some(meant) = LEVELS.iter().find(|level| is_almost(directive, level)) {
            return Err(wrong(format!(
                "is not a level; did you mean `{meant}`? For a target of this name, write `{directive}=trace`"
            )));
        }
        check_target(directive).map_err(wrong)?;
        return Ok(targets.with_target(directive, LevelFilter::TRACE));
    };
    check_target(target).map_err(wrong)?;
    let level = level_of(level).ok_or_else(|| {
        wrong(format!(
            "has the unknown level `{level}`; levels are {}",
            LEVELS.join(", ")
        ))
    })?;
    Ok(targets.with_target(target, level))
}

fn level_of(text: &str) -> Option<LevelFilter> {
    // The parser takes an empty text for `error`.
    let is_text = !text.is_empty();
    is_text.then(|| text.parse().ok()).flatten()
}

fn check_target(target: &str) -> Result<(), String> {
    let is_part = |letter: char| letter.is_alphanumeric() || "_-:./".contains(letter);
    match target.chars().find(|letter| !is_part(*letter)) {
        None if target.is_empty() => Err("has no target before `=`".to_owned()),
        None => Ok(()),
        Some(letter) => Err(format!(
            "has {letter:?} in its target, which is the path of a module"
        )),
    }
}

/// Returns whether a text is a level with one typing error.
///
/// That is one letter left out, added or changed, or two neighbours swapped.
fn is_almost(text: &str, level: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let (text, level) = (text.as_bytes(), level.as_bytes());
    let same = text.iter().zip(level).take_while(|(a, b)| a == b).count();
    let (text, level) = (&text[same..], &level[same..]);
    let skip = |of: &[u8], count: usize| of.get(count..).unwrap_or_default().to_vec();
    let is_swapped = text.len() >= 2
        && level.len() >= 2
        && (text[0], text[1]) == (level[1], level[0])
        && text[2..] == level[2..];
    is_swapped
        // A changed letter, then one too many, then one too few.
        || skip(text, 1) == skip(level, 1)
        || skip(text, 1) == level
        || text == skip(level, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn would_log(filter: &str, target: &str, level: tracing::Level) -> bool {
        InForce::read(filter)
            .unwrap()
            .targets
            .would_enable(target, &level)
    }

    fn error(filter: &str) -> String {
        InForce::read(filter).err().unwrap().to_string()
    }

    #[test]
    fn the_longest_target_decides() {
        let filter = "warn, lariat=info ,lariat::write=trace,demo";
        for (target, level, expected) in [
            ("hyper", tracing::Level::WARN, true),
            ("hyper", tracing::Level::INFO, false),
            ("lariat_cache::reflector", tracing::Level::INFO, true),
            ("lariat_cache::reflector", tracing::Level::DEBUG, false),
            ("lariat::run", tracing::Level::DEBUG, false),
            ("lariat::write", tracing::Level::TRACE, true),
            ("demo::shop", tracing::Level::TRACE, true),
        ] {
            assert_eq!(would_log(filter, target, level), expected, "{target}");
        }
        assert!(!would_log("demo=info", "other", tracing::Level::ERROR));
        assert!(would_log("INFO", "other", tracing::Level::INFO));
    }

    #[test]
    fn what_may_quote_secrets_is_only_logged_if_it_is_named() {
        let logs = |filter, level| would_log(filter, QUOTING, level);
        assert!(logs("debug", tracing::Level::INFO));
        assert!(!logs("trace,lariat=debug", tracing::Level::DEBUG));
        assert!(!logs("warn", tracing::Level::INFO));
        assert!(logs("info,kube_client=debug", tracing::Level::DEBUG));
        assert!(would_log(
            "debug",
            "kube_client::config",
            tracing::Level::DEBUG
        ));
    }

    #[test]
    fn errors_name_the_directive_and_an_example() {
        assert_eq!(
            error("info,lariat_cache=debgu"),
            "`lariat_cache=debgu` has the unknown level `debgu`; levels are off, error, warn, info, debug, trace; \
             an example of a filter is `info,lariat_cache=debug`"
        );
        for (filter, expected) in [
            ("inof", "`inof` is not a level; did you mean `info`?"),
            ("waarn", "`waarn` is not a level; did you mean `warn`?"),
            (
                "debg,x=info",
                "`debg` is not a level; did you mean `debug`?",
            ),
            ("x=", "`x=` has the unknown level ``"),
            ("x=info=debug", "has the unknown level `info=debug`"),
            ("=info", "`=info` has no target before `=`"),
            ("a b=info", "`a b=info` has ' ' in its target"),
            ("info,[run{key=a}]=trace", "filters by span or field"),
            (" , ", "has no directive; to log nothing, use `off`"),
        ] {
            let text = error(filter);
            assert!(text.contains(expected), "{filter}: {text}");
            assert!(text.ends_with("`info,lariat_cache=debug`"), "{text}");
        }
    }

    #[test]
    fn names_unlike_levels_are_targets() {
        for name in ["shop", "in", "debugger", "warnings", "infra", "off_by_one"] {
            assert!(InForce::read(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn a_rejected_filter_leaves_the_old_one_in_force() {
        let filter: LogFilter = "info".parse().unwrap();
        let handle = filter.clone();
        assert!(handle.set("lariat=loud").is_err());
        assert_eq!(filter.current(), "info");
        handle.set(" debug ").unwrap();
        assert_eq!(filter.current(), "debug");
    }
}
