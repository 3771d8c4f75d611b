//! The options of `lariat replay`.

use std::path::PathBuf;

use clap::ValueHint;
use clap::builder::NonEmptyStringValueParser;

use super::when::When;

const EXAMPLE: &str = "\
Example:
  lariat replay /var/run/op.flight --key shop/web-0 --since -10m";

/// The file, and which of its entries to show.
#[derive(Debug, Default, PartialEq, clap::Args)]
#[command(args_override_self = true, after_help = EXAMPLE)]
pub(crate) struct Options {
    /// The file, such as /var/run/op.flight.
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Show only this kind, such as ConfigMap or 'apps/v1 Deployment'.
    #[arg(long, value_name = "KIND", value_parser = NonEmptyStringValueParser::new(), help_heading = "Filters")]
    pub(crate) kind: Option<String>,
    /// Show only this object: namespace/name, or namespace/ for all of them.
    #[arg(long, value_name = "KEY", value_parser = NonEmptyStringValueParser::new(), help_heading = "Filters")]
    pub(crate) key: Option<String>,
    /// Show only this handler's calls and the keys that are due for it.
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new(), help_heading = "Filters")]
    pub(crate) handler: Option<String>,
    /// Show records from this time on: 2026-11-22T02:13:00Z, 90s or -10m.
    ///
    /// 90s counts from the start of the process, -10m back from the end of the recording.
    #[arg(
        long,
        value_name = "TIME",
        allow_hyphen_values = true,
        help_heading = "Filters"
    )]
    pub(crate) since: Option<When>,
    /// Show records up to this time.
    #[arg(
        long,
        value_name = "TIME",
        allow_hyphen_values = true,
        help_heading = "Filters"
    )]
    pub(crate) until: Option<When>,
    /// Show totals instead of a timeline.
    ///
    /// Counts by kind and handler, why lists and watches ended, the longest waits and calls, the hottest keys.
    #[arg(long, help_heading = "Output")]
    summary: bool,
    /// Repeat the recorded decisions with the code of this version.
    ///
    /// The records are replayed with the queues and reflectors of this version, and the first decision that differs is
    /// shown. All records of a kind are needed, so --kind is the only filter it takes.
    #[arg(long, conflicts_with_all = ["summary", "key", "handler", "since", "until"], help_heading = "Output")]
    check: bool,
}

/// What is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Show {
    Timeline,
    Summary,
    Check,
}

impl Options {
    pub(super) fn show(&self) -> Show {
        if self.check {
            Show::Check
        } else if self.summary {
            Show::Summary
        } else {
            Show::Timeline
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::parsed;

    #[test]
    fn a_check_takes_all_records_of_a_kind() {
        let options: Options = parsed(&["f", "--check", "--kind", "Pod"]).unwrap();
        assert_eq!(
            (options.show(), options.kind.as_deref()),
            (Show::Check, Some("Pod"))
        );
        for other in [&["--key", "a/b"][..], &["--summary"], &["--since", "-10m"]] {
            let error = parsed::<Options>(&[&["f", "--check"], other].concat()).unwrap_err();
            let (error, option) = (error.to_string(), other[0]);
            assert!(error.contains("'--check' cannot be used with"), "{error}");
            assert!(error.contains(option), "{error}");
        }
    }
}
