//! The command line.

use std::path::PathBuf;

use anyhow::{Result, bail};

/// The options.
#[derive(Debug, Default)]
pub(crate) struct Options {
    /// The kubeconfig of the cluster to run on; none for the embedded cluster.
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Whether to run until Ctrl-C.
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
