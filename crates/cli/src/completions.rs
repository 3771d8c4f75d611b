//! `lariat completions`: the completion scripts of shells.

use clap_complete::Shell;

/// The options of `lariat completions`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::Args)]
pub(crate) struct Options {
    /// The shell to write it for.
    shell: Shell,
}

/// Returns the script for a shell.
pub(crate) fn script(options: Options, mut command: clap::Command) -> String {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut command, "lariat", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}
