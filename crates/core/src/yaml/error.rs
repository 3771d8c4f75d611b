//! Errors of reading.

use granit_parser::{ErrorKind, ScanError};

/// Text that is not the YAML that kubectl reads.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}, see line {line}")]
pub struct YamlError {
    line: usize,
    problem: String,
    go: String,
}

impl YamlError {
    /// Returns the line, counted from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        self.line
    }

    /// Returns the message of Go's reader, which may contain names of the text.
    ///
    /// Lines of errors in the syntax may differ by some.
    #[must_use]
    pub fn in_words_of_go(&self) -> &str {
        &self.go
    }

    /// An error of Go's decoder, which names no line.
    pub(super) fn new(line: usize, problem: &str, go: impl Into<String>) -> Self {
        Self {
            line,
            problem: problem.to_owned(),
            go: go.into(),
        }
    }

    /// An error of the syntax.
    pub(super) fn of_syntax(error: &ScanError, text: &str) -> Self {
        let line = error.marker().line().max(1);
        Self {
            line,
            problem: error.info(),
            go: format!("yaml: {}", syntax_in_words_of_go(error, line, text)),
        }
    }
}

/// Translates an error into the words of Go's reader.
///
/// Go's scanner counts lines from 1, its parser from 0, and neither names the first one.
fn syntax_in_words_of_go(error: &ScanError, line: usize, text: &str) -> String {
    let scanner = |problem: &str| at_line(line, problem);
    let parser = |problem: &str| at_line_from_zero(line - 1, problem);
    match error.kind() {
        ErrorKind::RecursionLimitExceeded => scanner(TOO_DEEP),
        ErrorKind::MappingValueNotAllowed => {
            scanner("mapping values are not allowed in this context")
        }
        ErrorKind::MappingKeyNotAllowed => scanner("mapping keys are not allowed in this context"),
        ErrorKind::BlockSequenceEntryNotAllowed => {
            scanner("block sequence entries are not allowed in this context")
        }
        // Go notices it on the line behind the key, also at the end of the text.
        ErrorKind::SimpleKeyExpected => at_line(line + 1, "could not find expected ':'"),
        // An open quote ends at the first line of less indentation, for Go at the end of the text.
        ErrorKind::UnclosedQuotedScalar | ErrorKind::InvalidQuotedScalarIndent => {
            let end = text.matches('\n').count() + 1;
            at_line(end, "found unexpected end of stream")
        }
        ErrorKind::UnknownQuotedScalarEscape => scanner("found unknown escape character"),
        ErrorKind::InvalidQuotedScalarHexEscape => {
            scanner("did not find expected hexdecimal number")
        }
        ErrorKind::UnexpectedCharacter { .. }
        | ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation => {
            scanner("found character that cannot start any token")
        }
        ErrorKind::TabInIndentation => scanner(TAB),
        // The place is where the text begins; the tab is on its next line.
        ErrorKind::TabInPlainScalar => at_line(line + 1, TAB),
        ErrorKind::UndeclaredTagHandle => parser("found undefined tag handle"),
        ErrorKind::ExpectedNodeContent => parser("did not find expected node content"),
        ErrorKind::ExpectedBlockMappingKey => parser("did not find expected key"),
        ErrorKind::ExpectedBlockSequenceEntry => parser("did not find expected '-' indicator"),
        ErrorKind::ExpectedFlowMappingSeparator => parser("did not find expected ',' or '}'"),
        ErrorKind::ExpectedFlowSequenceSeparator => parser("did not find expected ',' or ']'"),
        ErrorKind::MismatchedFlowCollectionEnd { open, .. } => parser(unclosed(*open)),
        ErrorKind::UnclosedFlowCollection { open } => {
            // Where a value may follow, Go's parser expects one.
            let expects_value = text.trim_end().ends_with(['[', '{', ',', ':']);
            let problem = if expects_value {
                "did not find expected node content"
            } else {
                unclosed(*open)
            };
            at_line_from_zero(text.lines().count(), problem)
        }
        _ => scanner(&error.info()),
    }
}

const TAB: &str = "found a tab character that violates indentation";

/// The problem of a text that nests deeper than Go's reader allows.
pub(super) const TOO_DEEP: &str = "exceeded max depth of 10000";

fn unclosed(bracket: char) -> &'static str {
    if bracket == '[' {
        "did not find expected ',' or ']'"
    } else {
        "did not find expected ',' or '}'"
    }
}

pub(super) fn at_line(line: usize, problem: &str) -> String {
    if line > 1 {
        format!("line {line}: {problem}")
    } else {
        problem.to_owned()
    }
}

fn at_line_from_zero(line: usize, problem: &str) -> String {
    if line > 0 {
        format!("line {line}: {problem}")
    } else {
        problem.to_owned()
    }
}
