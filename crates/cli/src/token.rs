//! The token of `--token`, `--token-file` or the environment.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

/// The source of the token.
#[derive(Clone, PartialEq)]
pub(crate) enum Token {
    Given(OsString),
    File(PathBuf),
}

impl Token {
    /// Reads the value of an option.
    ///
    /// # Errors
    ///
    /// It is empty.
    pub(crate) fn option(text: OsString) -> Result<Self, &'static str> {
        if text.is_empty() {
            return Err("it is empty");
        }
        Ok(Self::Given(text))
    }

    /// Returns what stands for an option that is missing: a file, or else the environment.
    pub(crate) fn or_else(
        option: Option<Self>,
        file: Option<PathBuf>,
        environment: Option<OsString>,
    ) -> Option<Self> {
        // A variable that is set to nothing means no token.
        let environment = environment.filter(|text| !text.is_empty());
        let file = file.map(Self::File);
        option.or(file).or_else(|| environment.map(Self::Given))
    }

    /// Returns the token.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or the token does not fit a header. No error shows it.
    pub(crate) fn read(&self) -> Result<String> {
        let text = match self {
            Self::Given(text) => text.to_str().unwrap_or_default().to_owned(),
            Self::File(path) => {
                let text = fs::read_to_string(path)
                    .with_context(|| format!("cannot read the token in {}", path.display()))?;
                // Editors and `echo` end a file with a line break, which is not part of the token.
                text.trim_ascii_end().to_owned()
            }
        };
        ensure!(!text.is_empty(), "the token is empty, or no text");
        ensure!(
            text.bytes().all(|byte| byte.is_ascii_graphic()),
            "the token has characters that no header can carry"
        );
        Ok(text)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The token gives the rights of an administrator, so it must not get into any log.
        match self {
            Self::Given(_) => f.write_str("Given"),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_fits_a_header_and_no_error_shows_it() {
        assert_eq!(Token::Given("sesame".into()).read().unwrap(), "sesame");
        for (token, expected) in [
            (
                "sésame",
                "the token has characters that no header can carry",
            ),
            (
                "open sesame",
                "the token has characters that no header can carry",
            ),
            ("", "the token is empty, or no text"),
        ] {
            let error = Token::Given(token.into()).read().unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
        let error = Token::File("/nonexistent".into()).read().unwrap_err();
        assert_eq!(error.to_string(), "cannot read the token in /nonexistent");
    }
}
