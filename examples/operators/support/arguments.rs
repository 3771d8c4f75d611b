//! Command lines that clap reads.

use anyhow::{Result, anyhow};
use clap::Parser;

/// Reads the arguments of the program; `None` if help was requested, and printed.
///
/// # Errors
///
/// They are invalid; the error contains the usage.
pub fn arguments<T: Parser>() -> Result<Option<T>> {
    read(T::try_parse())
}

pub(super) fn read<T>(arguments: Result<T, clap::Error>) -> Result<Option<T>> {
    let error = match arguments {
        Ok(read) => return Ok(Some(read)),
        Err(error) => error,
    };
    if !error.use_stderr() {
        error.print()?;
        return Ok(None);
    }
    let text = error.to_string();
    // The caller prints that it is an error.
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    Err(anyhow!("{}", text.trim_end()))
}
