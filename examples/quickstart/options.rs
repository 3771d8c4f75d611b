//! The command line.

use std::path::PathBuf;

/// Several named handlers on one watch, one cache and one queue per kind
#[derive(Debug, clap::Parser)]
#[command(bin_name = "cargo run --example quickstart --", max_term_width = 100)]
pub(crate) struct Options {
    /// Run on this cluster instead of the embedded one (or KUBECONFIG)
    #[arg(long, value_name = "PATH")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Run until Ctrl-C
    #[arg(long)]
    pub(crate) watch: bool,
}
