//! Actions in words.

use std::fmt;

use super::action::{Action, After};
use super::refusal::{ErrorBody, Refusal};

impl Action {
    /// Returns the words for an action without parameters.
    fn plain(&self) -> Option<&'static str> {
        Some(match self {
            Self::NoAnswer => "are neither handled nor answered",
            Self::Disconnect => "have their connection closed instead of being handled",
            Self::LoseReply => "are handled, and have their connection closed instead of an answer",
            Self::NoReply => "are handled, and never answered",
            Self::Expire => "find their version expired",
            Self::Gone => "find their version expired, by HTTP 410",
            Self::StaleRead => "show the state there was when this fault was added",
            Self::Freeze => "show nothing that came after this fault was added",
            Self::Conflict => "find their object changed by another client just before",
            Self::RefuseWatchList => "are answered 422, as by old servers",
            Self::LegacyDiscovery => "are answered as by servers before Kubernetes 1.26",
            Self::OmitInitialEnd => "never get the bookmark that ends the initial events",
            Self::SkipStates => "get only the net changes since their version",
            Self::Garble => "are answered with invalid JSON",
            Self::Html => "are answered with a page of HTML",
            Self::DuplicateEvents => "get every event twice",
            _ => return None,
        })
    }

    /// Returns the words for the requests that it applies to.
    pub(crate) fn requests(&self) -> &'static str {
        match self {
            Self::EndWatch(_)
            | Self::CutWatch(_)
            | Self::HangWatch(_)
            | Self::DuplicateEvents
            | Self::OmitInitialEnd => "watches",
            Self::RefuseWatchList => "watches that ask for initial events",
            Self::ReplayEvents(_) | Self::SkipStates => "watches from a version",
            Self::Expire | Self::Gone => "watches and lists from a version",
            Self::StaleRead => "reads at version 0",
            Self::Freeze => "reads",
            Self::Conflict => "updates and patches",
            Self::Reject(_) => "writes",
            Self::ExceedQuota(_) => "creations",
            Self::LegacyDiscovery => "discovery requests",
            _ => "requests",
        }
    }
}

/// Writes what happens to the requests, as in “are answered 503”.
impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Delay(time) => write!(f, "wait {time:?} before they are handled"),
            Self::DelayReply(time) => write!(f, "are handled, and answered {time:?} later"),
            Self::Refuse(refusal) => write!(f, "are answered {refusal}"),
            Self::SkipVersions(versions) => {
                write!(f, "raise the version of the cluster by {versions} first")
            }
            Self::EndWatch(after) => write!(f, "end {after}"),
            Self::CutWatch(after) => write!(f, "break in the middle of a line {after}"),
            Self::HangWatch(after) => write!(f, "fall silent {after}, and do not end"),
            Self::ReplayEvents(events) => write!(f, "get the last {events} events again"),
            Self::Bandwidth(rate) => write!(f, "are answered with {rate} bytes a second"),
            Self::Recreate(name) if name.is_empty() => {
                f.write_str("find their object deleted and created again")
            }
            Self::Recreate(name) => write!(f, "find {name} deleted and created again"),
            Self::Reject(why) => write!(f, "are answered 403: {why}"),
            Self::ExceedQuota(quota) => {
                write!(f, "are answered 403: the quota {quota} is used up")
            }
            Self::LimitRequests(most) => {
                write!(f, "are answered 429 while {most} others are being handled")
            }
            Self::CutBody(bytes) => {
                write!(
                    f,
                    "have their connection closed after {bytes} bytes of the answer"
                )
            }
            Self::Truncate(bytes) => write!(f, "get the first {bytes} bytes of the answer"),
            other => f.write_str(other.plain().unwrap_or("are disturbed")),
        }
    }
}

impl fmt::Display for After {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Events(0) => f.write_str("at once"),
            Self::Events(1) => f.write_str("after 1 event"),
            Self::Events(events) => write!(f, "after {events} events"),
            Self::Time(time) => write!(f, "after {time:?}"),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.code)?;
        match self.body {
            ErrorBody::Status => {}
            ErrorBody::Text => f.write_str(" in plain text")?,
            ErrorBody::Html => f.write_str(" as a page of HTML")?,
        }
        match self.retry_after {
            None => Ok(()),
            Some(seconds) => write!(f, ", to be tried again after {seconds}s"),
        }
    }
}
