//! Asking for the state, and printing it.

use std::process::ExitCode;

use anyhow::Result;

use super::options::Options;
use super::text;
use crate::console::{Console, Output, Printer, run_until_asked};

/// The exit code for a program that is not ready or cannot be reached.
const NOT_READY: u8 = 1;

/// Shows the state of a program.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    run_until_asked(show(options))
}

async fn show(options: &Options) -> Result<ExitCode> {
    let console = Console::connect(&options.source).await?;
    let answer = console.overview().await?;
    let mut printer = Printer::new();
    match options.output {
        Output::Text => printer.lines(&text::lines(&answer.value, console.place()))?,
        Output::Json => printer.json(&answer.json)?,
    }
    Ok(if answer.value.health.ready {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(NOT_READY)
    })
}
