//! What tests share: the options of one command, and a terminal.

pub(crate) mod tmux;

/// Reads the arguments of a command, without its name.
pub(crate) fn parsed<T: clap::Args>(arguments: &[&str]) -> Result<T, clap::Error> {
    let command = clap::Command::new("lariat").no_binary_name(true);
    let matches = T::augment_args(command).try_get_matches_from(arguments)?;
    T::from_arg_matches(&matches)
}
