//! The filter of a running program.

use lariat_console::logging::Logging;
#[cfg(feature = "server")]
use lariat_console::{Console, LogFilter as _};

use crate::support::Log;

fn lines_of_all_levels(log: &Log) -> usize {
    log.written.clear();
    tracing::error!("error");
    tracing::warn!("warn");
    tracing::info!("info");
    tracing::debug!("debug");
    tracing::trace!("trace");
    log.text().lines().count()
}

#[test]
fn a_change_takes_effect_at_once_and_a_rejected_one_has_none() {
    let log = Log::begin("warn", Logging::builder());
    let filter = log.logging.handle();
    assert_eq!(lines_of_all_levels(&log), 2);
    filter.set("trace").unwrap();
    assert_eq!(lines_of_all_levels(&log), 5);
    let error = filter.set("off,logging=verbose").unwrap_err();
    assert_eq!(error.directive(), "logging=verbose");
    assert_eq!(filter.current(), "trace");
    assert_eq!(lines_of_all_levels(&log), 5);
    filter.set("off,logging::filters=debug").unwrap();
    assert_eq!(lines_of_all_levels(&log), 4);
    filter.set("trace,logging::filters=off").unwrap();
    assert_eq!(lines_of_all_levels(&log), 0);
}

#[test]
fn a_span_that_began_before_a_change_is_not_in_lines_after_it() {
    let log = Log::begin("warn", Logging::builder());
    let span = tracing::info_span!("tenant", tenant = "acme");
    log.logging.handle().set("info").unwrap();
    span.in_scope(|| tracing::info!("before"));
    let span = tracing::info_span!("tenant", tenant = "acme");
    span.in_scope(|| tracing::info!("after"));
    let text = log.text();
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].ends_with("logging: before"), "{text}");
    assert!(lines[1].ends_with("logging: after  tenant=acme"), "{text}");
}

#[cfg(feature = "server")]
#[test]
fn a_console_shows_and_changes_it() {
    let log = Log::begin("warn", Logging::builder());
    let filter = log.logging.handle();
    let _console = Console::on("127.0.0.1:0").log_filter(filter.clone());
    assert_eq!(filter.filter(), "warn");
    let error = filter.set_filter("loud=loud").unwrap_err();
    assert!(
        error.starts_with("`loud=loud` has the unknown level `loud`"),
        "{error}"
    );
    filter.set_filter("info").unwrap();
    assert_eq!(lines_of_all_levels(&log), 3);
}
