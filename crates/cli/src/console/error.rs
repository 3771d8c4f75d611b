//! What goes wrong with a console, and what to do about it.

use std::error::Error;
use std::io;
use std::time::Duration;

use http::StatusCode;
use lariat_core::describe;

/// How many characters of an error of the server are shown.
const SHOWN: usize = 300;

/// The way to a console: how it is named, and who may refuse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The address, or the pod.
    pub(super) name: String,
    /// Whether the API server is between.
    pub(super) is_pod: bool,
    /// Whether a token is sent.
    pub(super) has_token: bool,
}

/// A question without an answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AskError {
    /// Nothing listens.
    #[error(
        "cannot reach a console at {0}: connection refused, nothing listens there; start a program that serves one \
         with operator.serve(Console::on(\"127.0.0.1:9090\"))?, or give its address with --url or its pod with --pod"
    )]
    Refused(String),
    /// The console cannot be reached.
    #[error("cannot reach a console at {place}: {detail}; {advice}")]
    NotReached {
        /// Where it was expected.
        place: String,
        /// Why.
        detail: String,
        /// What to do.
        advice: &'static str,
    },
    /// It sent nothing for as long as the timeout.
    #[error("{place} sent nothing for {}s; --timeout waits longer", after.as_secs())]
    Slow {
        /// Which console.
        place: String,
        /// How long it was waited for.
        after: Duration,
    },
    /// It answers, but not with what was asked for.
    #[error("{message}")]
    Status {
        /// The status.
        code: StatusCode,
        /// What the server says, and what to do.
        message: String,
    },
    /// The answer ends before it is complete.
    #[error("{place} ended its answer in the middle: {detail}")]
    Broken {
        /// Which console.
        place: String,
        /// How.
        detail: String,
    },
    /// The answer is something else.
    #[error("{place} answers {path} with something else than a console of Lariat does: {detail}")]
    Other {
        /// Which console.
        place: String,
        /// Which question.
        path: String,
        /// What is missing or wrong.
        detail: String,
    },
}

impl AskError {
    /// Returns whether this is what was asked for missing, and not the console.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Self::Status { code, .. } if *code == StatusCode::NOT_FOUND)
    }

    /// Describes a request that was not answered.
    pub(super) fn unreached(place: &Place, error: &(dyn Error + 'static)) -> Self {
        // On the way to a pod it is the API server that does not listen, and the advice would be wrong.
        if is_refused(error) && !place.is_pod {
            return Self::Refused(place.name.clone());
        }
        let advice = if place.is_pod {
            "check that the API server of the kubeconfig can be reached; --kubeconfig names another"
        } else {
            "check the address that --url gives, or ask through the API server with --pod"
        };
        Self::NotReached {
            place: place.name.clone(),
            detail: describe(error),
            advice,
        }
    }

    /// Describes a status that is no success; `said` is the body, if it is text.
    pub(super) fn status(place: &Place, path: &str, code: StatusCode, said: &str) -> Self {
        let said = message(said);
        let name = &place.name;
        let advice = match (code, place.is_pod, place.has_token) {
            (StatusCode::UNAUTHORIZED, _, true) => "it does not accept the token",
            (StatusCode::UNAUTHORIZED, _, false) => {
                "it requires a token: give one with --token-file or LARIAT_CONSOLE_TOKEN"
            }
            (StatusCode::FORBIDDEN, true, _) => {
                "the user of the kubeconfig needs the permission to get pods/proxy in the namespace, and the \
                 console must allow its user: --kubeconfig, --token-file and LARIAT_CONSOLE_TOKEN choose them"
            }
            (StatusCode::FORBIDDEN, false, true) => {
                "the user of the token may not look, or this is not an address of it"
            }
            (StatusCode::FORBIDDEN, false, false) => {
                "give a token with --token-file or LARIAT_CONSOLE_TOKEN, and the address it listens on as --url"
            }
            // Elsewhere a 404 is about the kind or the key, not about the console.
            (StatusCode::NOT_FOUND, ..) if path.ends_with("/overview") => {
                "there is no console of Lariat; --url or --pod names another place"
            }
            _ => "",
        };
        let mut text = format!("{name} answers {code}");
        for part in [&said[..], advice].into_iter().filter(|it| !it.is_empty()) {
            text.push_str(": ");
            text.push_str(part);
        }
        Self::Status {
            code,
            message: text,
        }
    }
}

/// Returns whether nothing listens.
fn is_refused(error: &(dyn Error + 'static)) -> bool {
    let io = error.downcast_ref::<io::Error>();
    let refuses = io.is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
    // The client wraps the error of the system in several others.
    refuses || error.source().is_some_and(is_refused)
}

/// Returns what the body of an error says: the message of a Status, or a short text.
fn message(body: &str) -> String {
    let status: Option<serde_json::Value> = serde_json::from_str(body).ok();
    let text = match &status {
        Some(status) => status["message"].as_str().unwrap_or_default(),
        // A page is for browsers.
        None if body.trim_start().starts_with('<') => "",
        None => body,
    };
    let line = clean(text.trim());
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Replaces what a terminal would take for something else than text.
///
/// These are control characters, and those that change the direction of writing.
pub(super) fn clean(text: &str) -> String {
    let is_safe = |c: char| {
        !c.is_control()
            && !matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars()
        .map(|c| if is_safe(c) { c } else { ' ' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(is_pod: bool, has_token: bool, answer: (u16, &str), expected: &str) {
        let place = Place {
            name: "http://a:1".to_owned(),
            is_pod,
            has_token,
        };
        let code = StatusCode::from_u16(answer.0).unwrap();
        let error = AskError::status(&place, "/api/v1/overview", code, answer.1);
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn a_refusal_says_what_the_server_says_and_which_option_helps() {
        check(
            false,
            false,
            (401, r#"{"kind":"Status","message":"who is there?"}"#),
            "http://a:1 answers 401 Unauthorized: who is there?: it requires a token: give one with --token-file or \
             LARIAT_CONSOLE_TOKEN",
        );
        check(
            false,
            true,
            (401, ""),
            "http://a:1 answers 401 Unauthorized: it does not accept the token",
        );
        check(
            false,
            false,
            (404, "<html>no\nsuch page</html>"),
            "http://a:1 answers 404 Not Found: there is no console of Lariat; --url or --pod names another place",
        );
        check(
            true,
            false,
            (503, "error trying to reach service\u{1b}[2J"),
            "http://a:1 answers 503 Service Unavailable: error trying to reach service [2J",
        );
    }

    #[test]
    fn a_console_that_is_not_reached_is_named_with_the_reason_and_what_to_do() {
        let unreached = |is_pod: bool, kind: io::ErrorKind| {
            let place = Place {
                name: "http://a:1".to_owned(),
                is_pod,
                has_token: false,
            };
            AskError::unreached(&place, &io::Error::from(kind)).to_string()
        };
        assert_eq!(
            unreached(false, io::ErrorKind::HostUnreachable),
            "cannot reach a console at http://a:1: host unreachable; check the address that --url gives, or ask through \
             the API server with --pod"
        );
        assert_eq!(
            unreached(true, io::ErrorKind::ConnectionRefused),
            "cannot reach a console at http://a:1: connection refused; check that the API server of the kubeconfig can \
             be reached; --kubeconfig names another"
        );
    }

    #[test]
    fn long_texts_are_cut() {
        let long = "ü".repeat(1000);
        assert_eq!(message(&long).chars().count(), SHOWN + 1);
        assert_eq!(message(r#"{"code": 5}"#), "");
    }
}
