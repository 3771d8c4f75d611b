//! The options of `lariat status`.

use std::ffi::OsString;

use crate::console::{Output, Source};

const EXAMPLES: &str = "\
Examples:
  lariat status
  lariat status --pod shops/shop-operator-0:9090
  until lariat status --output json >state.json; do sleep 1; done";

/// Which program, and how to show its state.
#[derive(Debug, PartialEq, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(super) source: Source,
    /// The output format; json is the overview of the console's API.
    #[arg(short, long, value_name = "FORM", value_enum, default_value_t = Output::Text, help_heading = "Output")]
    pub(super) output: Output,
}

impl Options {
    /// Takes the token of the environment, if no other is given.
    pub(crate) fn settle_token(&mut self, environment: Option<OsString>) {
        self.source.settle_token(environment);
    }
}
