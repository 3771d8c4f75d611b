//! The errors of lists and watches, and what they say about the API server.

use std::fmt;
use std::time::Duration;

use http::{Response, header};
use http_body_util::BodyExt;
use lariat_core::{ResourceVersion, describe};
use serde::Deserialize;

use super::backoff::FailureClass;
use super::end::End;
use super::policy;
use super::source::{SourceBody, SourceError};
use crate::mapper::NO_PATH;
use crate::publish::{Reconnect, Trouble};

/// The text of [`ReflectorError::NotServed`].
pub(crate) const NOT_SERVED: &str = "not served by the API server; is the CustomResourceDefinition installed and \
     established, and are group, version and plural spelled right?";

/// The error of a list or a watch.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReflectorError {
    /// The request was not sent, or not answered.
    #[error("{verb}: no answer from the API server")]
    Unreachable {
        /// `list` or `watch`.
        verb: &'static str,
        /// The client's error.
        source: SourceError,
    },
    /// The API server answered with an error.
    #[error("{verb} refused: {code} {message}")]
    Refused {
        /// `list` or `watch`.
        verb: &'static str,
        /// The HTTP status, or the code of an error event.
        code: u16,
        /// The API server's message.
        message: String,
        /// Its `Retry-After`.
        retry_after: Option<Duration>,
    },
    /// The version is no longer in the API server's history (410 Gone).
    #[error("{verb}: the resource version has expired")]
    Expired {
        /// `list` or `watch`.
        verb: &'static str,
        /// A token with which a list can continue at a newer version.
        continue_token: Option<String>,
    },
    /// The connection ended within the answer.
    #[error("{verb}: the answer was cut off")]
    Cut {
        /// `list` or `watch`.
        verb: &'static str,
        /// The client's error.
        source: SourceError,
    },
    /// The answer is not what the API specifies.
    #[error("{verb}: malformed answer: {detail}")]
    Malformed {
        /// `list` or `watch`.
        verb: &'static str,
        /// What is wrong.
        detail: String,
    },
    /// A line or a list is larger than allowed.
    #[error("{verb}: the answer is too large: a {part} has more than {limit} bytes")]
    TooLarge {
        /// `list` or `watch`.
        verb: &'static str,
        /// `line` or `list`.
        part: &'static str,
        /// The limit in bytes.
        limit: usize,
    },
    /// The answer is about another kind or version, so the absence of objects means nothing.
    #[error("{verb}: the answer is not of this kind and version")]
    OtherKind {
        /// `list` or `watch`.
        verb: &'static str,
    },
    /// The request was sent, and not answered in time.
    #[error("{verb}: no answer from the API server within {after:?}")]
    Unanswered {
        /// `list` or `watch`.
        verb: &'static str,
        /// The time limit.
        after: Duration,
    },
    /// The API server does not serve the collection (404).
    #[error("{}", NOT_SERVED)]
    NotServed,
    /// Nothing new arrived for so long that the connection, or the server behind it, is taken for dead.
    #[error("{verb}: nothing{} received for {after:?}", if *verb == "watch" { " new" } else { "" })]
    Silent {
        /// `list` or `watch`.
        verb: &'static str,
        /// How long nothing arrived.
        after: Duration,
    },
    /// The watch lies behind a write of this process to the kind.
    #[error(
        "watch: the API server is stale: bookmarks are at version {version}, although {since:?} ago a write was answered \
         with version {written}"
    )]
    Stale {
        /// The version of the last bookmark.
        version: ResourceVersion,
        /// The version of the write.
        written: ResourceVersion,
        /// How long ago it was answered, at least.
        since: Duration,
    },
    /// A watch list whose initial objects have no end marker.
    #[error("watch list: no end marker; lists are used instead")]
    NoEndMarker,
    /// The server was restored from a backup, as an earlier version or a missing event shows.
    #[error(
        "watch: the API server has another history than before, as after a restore from a backup"
    )]
    OtherHistory,
    /// A watch that ended at once and without an event.
    #[error("watch: closed at once, without an event")]
    EndedImmediately,
}

impl ReflectorError {
    /// Creates the error of an answer to a `list` or a `watch` that does not follow the API.
    pub(super) fn malformed(verb: &'static str, detail: &dyn fmt::Display) -> Self {
        let detail = detail.to_string();
        Self::Malformed { verb, detail }
    }

    /// Returns whether only a new list helps.
    pub(super) fn is_expired(&self) -> bool {
        matches!(self, Self::Expired { .. })
    }

    /// Returns the failure without its texts, for the policy.
    pub(super) fn end(&self) -> End {
        match self {
            Self::Unreachable { .. } => End::Unreachable,
            Self::Refused {
                code, retry_after, ..
            } => End::Refused {
                status: *code,
                retry_after: *retry_after,
            },
            Self::Expired { .. } => End::Expired,
            Self::Cut { .. } => End::Cut,
            Self::Malformed { .. } | Self::TooLarge { .. } | Self::OtherKind { .. } => {
                End::Malformed
            }
            Self::Unanswered { .. } => End::Unanswered,
            Self::NotServed => End::NotServed,
            Self::Silent { .. } | Self::Stale { .. } => End::Silent,
            Self::NoEndMarker => End::NoEndMarker,
            Self::OtherHistory => End::OtherHistory,
            Self::EndedImmediately => End::EndedImmediately,
        }
    }

    /// Returns whether the watch received nothing new, so that its server may have stopped to watch.
    pub(super) fn is_silent(&self) -> bool {
        matches!(self, Self::Silent { .. } | Self::Stale { .. })
    }

    pub(super) fn is_stale(&self) -> bool {
        matches!(self, Self::Stale { .. })
    }

    /// Returns whether the API server forbids the request.
    pub(super) fn is_forbidden(&self) -> bool {
        matches!(self, Self::Refused { code: 403, .. })
    }

    /// Returns whether a list is larger than allowed.
    pub(super) fn is_too_large(&self) -> bool {
        matches!(self, Self::TooLarge { .. })
    }

    /// Returns whether the API server does not serve the collection.
    pub(super) fn is_not_served(&self) -> bool {
        matches!(self, Self::NotServed)
    }

    /// Returns whether the server did not answer.
    pub(super) fn is_unanswered(&self) -> bool {
        policy::failure_class(self.end()) == FailureClass::Unanswered
    }

    /// Returns the failure for log and status.
    pub(super) fn trouble(&self) -> Trouble {
        Trouble {
            summary: if self.is_unanswered() {
                "the API server cannot be reached"
            } else {
                "the cache is not up to date"
            },
            error: describe(self),
            // The informer asks discovery, and then says more.
            is_brief: self.is_not_served(),
        }
    }

    /// Returns the reason of the next connection, for the counters.
    pub(super) fn reason(&self) -> Reconnect {
        match self {
            Self::EndedImmediately => Reconnect::Closed,
            Self::Expired { .. } => Reconnect::Expired,
            Self::Silent { .. } | Self::Stale { .. } => Reconnect::Silent,
            Self::Unanswered { .. } => Reconnect::Silent,
            Self::Refused { .. } | Self::NotServed => Reconnect::Refused,
            Self::Unreachable { .. } | Self::Cut { .. } => Reconnect::Failed,
            Self::Malformed { .. } | Self::TooLarge { .. } | Self::OtherKind { .. } => {
                Reconnect::Failed
            }
            Self::NoEndMarker | Self::OtherHistory => Reconnect::Failed,
        }
    }
}

/// The relevant part of a Kubernetes `Status`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Status {
    kind: String,
    code: u16,
    reason: String,
    message: String,
    details: Details,
    metadata: ListMetadata,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Details {
    retry_after_seconds: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ListMetadata {
    r#continue: String,
}

impl Status {
    pub(super) fn into_error(self, verb: &'static str) -> ReflectorError {
        let seconds = self.details.retry_after_seconds;
        // The code or the reason decides, as in client-go.
        if self.code == 410 || matches!(self.reason.as_str(), "Expired" | "Gone") {
            let continue_token = Some(self.metadata.r#continue).filter(|token| !token.is_empty());
            return ReflectorError::Expired {
                verb,
                continue_token,
            };
        }
        // The API server answers 404 for an unknown collection, and not for an empty one. A proxy's 404 means that the
        // proxy did not find the API server, so only the API server's own answer counts.
        let by_server = self.kind == "Status" || self.message.trim() == NO_PATH;
        if self.code == 404 && by_server {
            return ReflectorError::NotServed;
        }
        ReflectorError::Refused {
            verb,
            code: self.code,
            message: [self.reason, self.message].join(": "),
            retry_after: (seconds > 0).then(|| Duration::from_secs(seconds)),
        }
    }
}

/// How much of an error's body is read, in bytes.
const BODY_LIMIT: usize = 64 * 1024;

/// How much of a text that is not a `Status` is kept, in characters.
const TEXT_LIMIT: usize = 200;

/// Converts an HTTP error to a reflector error.
pub(super) async fn refused(verb: &'static str, response: Response<SourceBody>) -> ReflectorError {
    let (parts, mut body) = response.into_parts();
    let mut text = Vec::new();
    // A body that is cut off may still contain the message.
    while text.len() < BODY_LIMIT
        && let Some(Ok(frame)) = body.frame().await
    {
        text.extend_from_slice(frame.data_ref().map_or(&[], |data| data));
    }
    let mut status: Status = serde_json::from_slice(&text).unwrap_or_else(|_| Status {
        message: first_line(&String::from_utf8_lossy(&text)),
        reason: parts
            .status
            .canonical_reason()
            .unwrap_or("error")
            .to_owned(),
        ..Status::default()
    });
    status.code = parts.status.as_u16();
    let asked = parts
        .headers
        .get(header::RETRY_AFTER)
        .and_then(|value| value.to_str().ok());
    // The header wins over the body.
    if let Some(seconds) = asked.and_then(|seconds| seconds.trim().parse().ok()) {
        status.details.retry_after_seconds = seconds;
    }
    status.into_error(verb)
}

fn first_line(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    line.chars().take(TEXT_LIMIT).collect()
}
