//! Errors as texts for logs and people.

use std::error::Error;

/// Writes an error and its causes as one line, each thing said once.
///
/// Many errors repeat their cause in their own text; a cause whose text is there already is left out.
#[must_use]
pub fn describe(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("outer: {0}")]
    struct Outer(#[source] Inner);

    #[derive(Debug, thiserror::Error)]
    #[error("inner")]
    struct Inner(#[source] std::fmt::Error);

    #[test]
    fn each_cause_is_said_once() {
        let error = Outer(Inner(std::fmt::Error));
        assert_eq!(
            describe(&error),
            format!("outer: inner: {}", std::fmt::Error)
        );
    }
}
