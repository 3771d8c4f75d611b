//! The options of `lariat top`.

use std::ffi::OsString;

use crate::console::{Output, Source};

const HELP: &str = "\
Enter opens a controller, and there a key; Esc goes back; / filters; ? lists all keys; q ends.

Examples:
  lariat top
  lariat top --pod shops/shop-operator-0:9090
  lariat top --once | head";

/// Which program, and how to show it.
#[derive(Debug, PartialEq, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(super) source: Source,
    /// Print one frame as plain text.
    #[arg(long, help_heading = "Output")]
    pub(super) once: bool,
    /// The output format; json prints an overview of the console's API each second.
    #[arg(short, long, value_name = "FORM", value_enum, default_value_t = Output::Text, help_heading = "Output")]
    pub(super) output: Output,
}

impl Options {
    /// Takes the token of the environment, if no other is given.
    pub(crate) fn settle_token(&mut self, environment: Option<OsString>) {
        self.source.settle_token(environment);
    }
}
