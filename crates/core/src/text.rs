//! Error texts for logs and users.

use std::error::Error;

/// Formats an error and its sources on one line, without repetition.
///
/// Many errors repeat their source in their own message; a source whose message has already appeared is left out. kube
/// appends the API server's whole Status in debug form to its message; that is removed.
///
/// ```
/// use std::io::{Error, ErrorKind};
///
/// let error = Error::new(ErrorKind::Other, "connection refused");
/// assert_eq!(lariat::describe(&error), "connection refused");
/// ```
#[must_use]
pub fn describe(error: &dyn Error) -> String {
    let mut text = own_text(error);
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = own_text(error);
        // Errors that include their source in their own message would say it twice.
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}

/// Implements `Debug` for errors by [`describe`].
///
/// Rust prints the debug form of an error that `main` returns.
#[macro_export]
macro_rules! debug_as_description {
    ($($error:ty),+ $(,)?) => {$(
        impl ::std::fmt::Debug for $error {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(&$crate::describe(self))
            }
        }
    )+};
}

/// Returns an error's own message without kube's additions.
fn own_text(error: &dyn Error) -> String {
    let mut text = error.to_string();
    // kube's name for a failed request, which means nothing to users.
    if let Some(rest) = text.strip_prefix("ServiceError: ") {
        text = rest.to_owned();
    }
    // kube appends the API server's Status in debug form.
    if let Some(status) = text.find(" (Status { ") {
        text.truncate(status);
    }
    // A Status without a reason, as that of an invalid apply.
    text.truncate(text.trim_end_matches(": ").len());
    // kube's note about a response that is not a Status. The text of the response precedes it.
    if let Some(rest) = text.strip_suffix(": Failed to parse error data") {
        text.truncate(rest.trim_end().len());
    }
    text
}

/// Removes the values from a serde message, because they may be secrets.
///
/// serde quotes strings, and puts numbers and unknown variants in backticks. Names of fields and of expected types
/// remain.
///
/// ```
/// use lariat_core::without_values;
///
/// let message = r#"invalid type: string "hunter2", expected u64"#;
/// assert_eq!(without_values(message), "invalid type: string, expected u64");
/// ```
#[must_use]
pub fn without_values(message: &str) -> String {
    let mut text = String::with_capacity(message.len());
    let mut rest = message;
    while let Some((start, quote)) = next_value(rest) {
        text.push_str(&rest[..start]);
        let quoted = &rest[start + 2..];
        rest = quoted.get(end_of(quoted, quote) + 1..).unwrap_or_default();
    }
    text.push_str(rest);
    text
}

/// Returns the position of the quote that ends a value, or the end of the text.
fn end_of(quoted: &str, quote: char) -> usize {
    let end = if quote == '"' {
        // serde prints strings in debug form, so a quote within a value is escaped.
        let mut is_escaped = false;
        quoted.find(|letter| {
            let is_end = letter == '"' && !is_escaped;
            is_escaped = letter == '\\' && !is_escaped;
            is_end
        })
    } else {
        // Variants are printed without escapes and may contain backticks. The expected names after them are the
        // program's own.
        let last = quoted.rfind("`, expected ");
        last.or_else(|| quoted.rfind("`, there are no"))
            .or_else(|| quoted.find(quote))
    };
    end.unwrap_or(quoted.len())
}

/// Returns the position of the space before the next value, and the value's quote.
fn next_value(text: &str) -> Option<(usize, char)> {
    const BEFORE_BACKTICKS: [&str; 5] = [
        "integer",
        "floating point",
        "boolean",
        "character",
        "unknown variant",
    ];
    let string = text.find(" \"").map(|at| (at, '"'));
    let mut backticks = text.match_indices(" `").map(|(at, _)| at);
    let is_value = |at: &usize| {
        BEFORE_BACKTICKS
            .iter()
            .any(|word| text[..*at].ends_with(word))
    };
    // Field names are in backticks too, and are kept.
    let other = backticks.find(is_value).map(|at| (at, '`'));
    string.into_iter().chain(other).min()
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
    fn kube_s_debug_output_is_cut_off() {
        let error =
            std::io::Error::other("ApiError: no: NotFound (Status { status: Some(Failure) })");
        assert_eq!(describe(&error), "ApiError: no: NotFound");
        let error = std::io::Error::other("ApiError: no:  (Status { status: Some(Failure) })");
        assert_eq!(describe(&error), "ApiError: no");
    }

    #[test]
    fn an_answer_that_is_no_status_is_given_as_it_is() {
        let text = "ApiError: Too many requests, please try again later.\n: Failed to parse error data \
                    (Status { status: Some(Failure) })";
        assert_eq!(
            describe(&std::io::Error::other(text)),
            "ApiError: Too many requests, please try again later."
        );
    }

    #[test]
    fn each_cause_is_said_once() {
        let error = Outer(Inner(std::fmt::Error));
        assert_eq!(
            describe(&error),
            format!("outer: inner: {}", std::fmt::Error)
        );
    }

    #[test]
    fn values_are_taken_out_of_serde_messages() {
        for value in [
            "hunter2",
            "a\"b",
            "a, expected",
            "a\", expected hunter2",
            "a\\\", expected \"hunter2",
            "",
        ] {
            let json = serde_json::to_string(value).unwrap();
            let error = serde_json::from_str::<u16>(&json).unwrap_err().to_string();
            let text = without_values(&error);
            assert!(
                text.starts_with("invalid type: string, expected u16"),
                "{error} → {text}"
            );
            assert!(
                value.is_empty() || !text.contains(value),
                "{error} → {text}"
            );
        }
        for (message, expected) in [
            ("missing field `spec`", "missing field `spec`"),
            (
                "unknown field `a`, expected `b`",
                "unknown field `a`, expected `b`",
            ),
            (
                "invalid type: integer `5`, expected a string",
                "invalid type: integer, expected a string",
            ),
            (
                "unknown variant `x`, expected `A` or `B`",
                "unknown variant, expected `A` or `B`",
            ),
            (
                "unknown variant `x`, expected `y`, expected `A`",
                "unknown variant, expected `A`",
            ),
            (
                "invalid type: boolean `true`, expected u8",
                "invalid type: boolean, expected u8",
            ),
        ] {
            assert_eq!(without_values(message), expected);
        }
    }
}
