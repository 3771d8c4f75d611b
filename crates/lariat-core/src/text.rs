//! Errors as texts for logs and people.

use std::error::Error;

/// Writes an error and its causes as one line, each thing said once.
///
/// Many errors repeat their cause in their own text; a cause whose text is there already is left out.
/// kube appends the whole Status of the API server, in debug form, to its message; that goes too.
#[must_use]
pub fn describe(error: &dyn Error) -> String {
    let mut text = own_text(error);
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = own_text(error);
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}

fn own_text(error: &dyn Error) -> String {
    let mut text = error.to_string();
    if let Some(status) = text.find(" (Status { ") {
        text.truncate(status);
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
    fn kube_s_debug_output_is_cut_off() {
        let error =
            std::io::Error::other("ApiError: no: NotFound (Status { status: Some(Failure) })");
        assert_eq!(describe(&error), "ApiError: no: NotFound");
    }

    #[test]
    fn each_cause_is_said_once() {
        let error = Outer(Inner(std::fmt::Error));
        assert_eq!(
            describe(&error),
            format!("outer: inner: {}", std::fmt::Error)
        );
    }
}
