//! The actions of faults.

use std::time::Duration;

use super::refusal::Refusal;

/// The effect of a [`Rule`](crate::faults::Rule) on a request.
///
/// An action applies only to requests of the kind it describes; a rule does not count the others.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// Delays the request before it is handled, on tokio's clock. Legal.
    Delay(Duration),
    /// Answers an error and does nothing else. Legal for 429 and 5xx.
    Refuse(Refusal),
    /// Never answers, and does nothing. The connection stays open. Legal.
    NoAnswer,
    /// Closes the connection without an answer, and does nothing. Legal.
    ///
    /// All requests of the connection end with it. In process, the call fails.
    Disconnect,
    /// Handles the request, and closes the connection without an answer. Legal.
    LoseReply,
    /// Handles the request at once, and delays its answer on tokio's clock. Legal.
    ///
    /// The answer shows what there was when the request was handled. A watch begins with the state of
    /// that moment, and its events wait too. If the connection is to break, it breaks after the delay. If the
    /// cluster stops meanwhile, the answer is sent.
    DelayReply(Duration),
    /// Handles the request, and never answers. The connection stays open. Legal.
    NoReply,
    /// Declares the version of a read expired. Legal.
    ///
    /// For watches from a version (an `ERROR` event inside the stream), and for lists that continue or ask
    /// for the state at a version (HTTP 410). A correct server has no reason to do this to other
    /// requests; use [`Refuse`](Self::Refuse) for those.
    Expire,
    /// Declares the version of a read expired with HTTP 410, for watches too. Legal.
    ///
    /// It applies to the same requests as [`Expire`](Self::Expire). A client has to handle both forms
    /// ("Efficient detection of changes" in the concepts of the Kubernetes API).
    Gone,
    /// Answers reads at version `0` with the state when the rule was added. Legal.
    ///
    /// A watch from version `0` gets later changes as events. If the history does not reach
    /// back that far, the oldest known state is used.
    StaleRead,
    /// Changes the object just before an update or a patch, as another client. Legal.
    ///
    /// Its annotation `lariat/touched` gets a new value. The update conflicts if it names
    /// the version it replaces.
    Conflict,
    /// Raises the cluster's version by a number before the request is handled. Legal.
    ///
    /// Versions stay below 2⁶².
    SkipVersions(u64),
    /// Ends a watch cleanly, as its timeout does. Legal.
    EndWatch(After),
    /// Cuts a watch off in the middle of a line. Legal.
    CutWatch(After),
    /// Sends nothing more on a watch, and does not end it. Legal.
    ///
    /// The timeout of the watch does not end it either. It ends when [all watches do](crate::Cluster::cut_watches).
    HangWatch(After),
    /// Sends the last events up to a watch's start version again. **Illegal.**
    ///
    /// The number is how many events of the resource up to that version are sent, as far as the
    /// history has them.
    ReplayEvents(usize),
    /// Refuses watches that ask for initial events with 422, as old servers do. Legal.
    RefuseWatchList,
    /// Answers discovery group by group, as servers before Kubernetes 1.26. Legal.
    LegacyDiscovery,
    /// Leaves out the bookmark that marks the end of the initial events. **Illegal.**
    OmitInitialEnd,
    /// Sends the body of an answer with no more than so many bytes a second. Legal.
    ///
    /// It does not slow the request itself, nor compress the answer. 0 counts as 1.
    Bandwidth(u64),
    /// Keeps reads at the state there was when the rule was added. **Illegal.**
    ///
    /// Unlike [`StaleRead`](Self::StaleRead), this includes consistent reads: lists return the old state
    /// with its version, and watches send no later changes. Reads at a version that the client names,
    /// and pages that it continues, are not affected.
    Freeze,
    /// Sends only net changes when a watch goes on from a version. Legal.
    ///
    /// States in between are left out, and objects that came and went meanwhile.
    SkipStates,
    /// Deletes an object and creates it again, before the request is handled. Legal.
    ///
    /// It keeps its name and content and gets a new uid, as when another client deletes and creates it.
    /// An empty name stands for the object in the path. Without a namespace in the path it happens in
    /// every one.
    Recreate(String),
    /// Refuses a write with 403 and a reason, as admission control does. Legal.
    Reject(String),
    /// Refuses a creation with 403 because the named quota is used up. Legal.
    ///
    /// The error names the present number of objects in the namespace as the limit.
    ExceedQuota(String),
    /// Refuses requests with 429 while so many others are being handled. Legal.
    ///
    /// The rule admits this many of its requests at a time, and only those it refuses count as its
    /// matches. A request is being handled until its answer is sent. Requests overlap in practice only
    /// if a [`Delay`](Self::Delay) after this rule, a [`DelayReply`](Self::DelayReply) or a
    /// [`Bandwidth`](Self::Bandwidth) prolongs them. Watches are admitted and not counted, as with
    /// `--max-requests-inflight`. 0 refuses all.
    LimitRequests(usize),
    /// Handles the request, and breaks the connection after some bytes. Legal.
    ///
    /// The bytes are those of the body. A watch breaks off wherever the bytes are used up, which may be in the middle
    /// of a line. A body that has fewer bytes is sent whole. Over HTTP/2 the connection stays, and the stream is reset.
    /// The answer is not compressed.
    CutBody(usize),
    /// Handles the request, and ends the body after some bytes. **Illegal.**
    ///
    /// The body looks complete.
    Truncate(usize),
    /// Handles the request, and answers invalid JSON as JSON. **Illegal.**
    Garble,
    /// Answers 200 with a page of HTML, and does nothing. **Illegal.**
    ///
    /// A proxy with a login page does so.
    Html,
    /// Sends every event of a watch twice. **Illegal.**
    DuplicateEvents,
}

/// The time at which something happens to a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum After {
    /// After so many events were sent, bookmarks included; 0 is at once.
    Events(usize),
    /// After so much time on tokio's clock.
    Time(Duration),
}

impl Action {
    /// Returns whether a client may see this although its API server is correct.
    ///
    /// Networks, proxies, overload, restarts and other clients cause such faults, and a client must recover from them.
    /// Illegal actions show how a client copes with a defective server.
    ///
    /// ```
    /// use lariat::cluster::faults::{Action, Refusal};
    ///
    /// assert!(Action::Conflict.is_legal(), "another client may write at any time");
    /// assert!(Action::Refuse(Refusal::too_many_requests()).is_legal());
    /// assert!(!Action::Garble.is_legal(), "an API server answers valid JSON");
    /// ```
    #[must_use]
    pub fn is_legal(&self) -> bool {
        match self {
            Self::Refuse(refusal) => refusal.is_legal(),
            Self::ReplayEvents(_)
            | Self::OmitInitialEnd
            | Self::Freeze
            | Self::Truncate(_)
            | Self::Garble
            | Self::Html
            | Self::DuplicateEvents => false,
            Self::Delay(_)
            | Self::NoAnswer
            | Self::Disconnect
            | Self::LoseReply
            | Self::DelayReply(_)
            | Self::NoReply
            | Self::CutBody(_)
            | Self::LimitRequests(_)
            | Self::Expire
            | Self::Gone
            | Self::StaleRead
            | Self::Conflict
            | Self::SkipVersions(_)
            | Self::EndWatch(_)
            | Self::CutWatch(_)
            | Self::HangWatch(_)
            | Self::RefuseWatchList
            | Self::LegacyDiscovery
            | Self::Bandwidth(_)
            | Self::SkipStates
            | Self::Recreate(_)
            | Self::Reject(_)
            | Self::ExceedQuota(_) => true,
        }
    }
}
