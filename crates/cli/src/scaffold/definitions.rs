//! `lariat crd`: the CRDs of a project, which its program prints.

use std::env;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use clap::ValueHint;

use super::existing;

/// Which project it is.
#[derive(Debug, PartialEq, clap::Args)]
pub(crate) struct DefinitionOptions {
    /// The project's folder.
    #[arg(long, value_name = "FOLDER", default_value = ".", value_hint = ValueHint::DirPath)]
    path: PathBuf,
}

/// Builds the project's program, and runs it; returns what it ended with.
pub(crate) fn run(options: &DefinitionOptions) -> Result<ExitCode> {
    existing::names(&options.path)?;
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(&cargo);
    command.args(["run", "--quiet", "--", "crd"]);
    let status = command.current_dir(&options.path).status();
    let status = status.with_context(|| format!("cannot run {}", cargo.display()))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
