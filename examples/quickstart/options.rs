//! The command line.

use std::path::PathBuf;

/// Several named handlers on one watch, one cache and one queue per kind
#[derive(Debug, clap::Parser)]
#[command(bin_name = "cargo run --example quickstart --", max_term_width = 100)]
pub(crate) struct Options {
    /// Run on this cluster instead of the embedded one (or KUBECONFIG)
    #[arg(long, value_name = "PATH")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Go on until Ctrl-C
    #[arg(long)]
    pub(crate) watch: bool,
}

impl Options {
    /// Parses the arguments; `None` if help was requested.
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Option<Self>> {
        let mut options = Self::default();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--watch" => options.watch = true,
                "--kubeconfig" => match arguments.next() {
                    Some(path) if !path.starts_with("--") => options.kubeconfig = Some(path.into()),
                    _ => bail!("--kubeconfig needs the path of a kubeconfig"),
                },
                other if other.starts_with("--kubeconfig=") => {
                    options.kubeconfig = other.split_once('=').map(|(_, path)| path.into());
                }
                "--help" | "-h" => return Ok(None),
                other => bail!("unknown option {other:?}; --help lists what there is"),
            }
        }
        Ok(Some(options))
    }
}

pub(crate) fn print_usage() {
    println!("cargo run --example quickstart -- [OPTIONS]\n");
    println!("Several named handlers on one watch, one cache and one queue per kind\n");
    println!(
        "  --kubeconfig PATH  run on this cluster instead of the embedded one (or KUBECONFIG)"
    );
    println!("  --watch            run until Ctrl-C");
}
