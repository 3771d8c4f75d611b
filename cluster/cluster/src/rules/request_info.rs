//! The attributes of a request that rules look at.

use lariat_apimachinery::kinds::Kinds;

use crate::fault::Action;
use crate::journal::RecordedRequest;
use crate::wire::query::Query;

/// A request as rules see it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestInfo<'a> {
    pub(crate) request: &'a RecordedRequest,
    pub(crate) query: &'a Query,
    pub(crate) kinds: &'a Kinds,
}

impl RequestInfo<'_> {
    fn is(&self, verbs: &[&str]) -> bool {
        !self.request.resource.is_empty() && verbs.contains(&&*self.request.verb)
    }

    /// Returns whether it is about objects of a kind.
    pub(super) fn is_about(&self, kind: &str) -> bool {
        let catalog = self.kinds.catalog();
        let group = &self.request.group;
        // A kind need not be in every version of its group.
        let mut versions = catalog.versions(group).into_iter();
        versions.any(|version| {
            let resource = catalog.resource(group, version, &self.request.resource);
            resource.is_some_and(|resource| resource.kind == kind)
        })
    }

    fn asks_for_initial_events(&self) -> bool {
        self.is(&["watch"]) && self.query.initial_events() == Some(true)
    }

    /// Returns whether a version other than `0` is named.
    fn names_version(&self) -> bool {
        !matches!(self.version(), "" | "0")
    }

    fn version(&self) -> &str {
        self.query.text("resourceVersion").unwrap_or_default()
    }

    /// Returns whether a watch continues from a version, without an initial state.
    fn watches_from_version(&self) -> bool {
        self.is(&["watch"]) && self.names_version() && !self.asks_for_initial_events()
    }

    /// Returns whether a list reads the state at one version.
    fn lists_old_state(&self) -> bool {
        let exact = self.query.text("resourceVersionMatch") == Some("Exact");
        let pages = self.query.text("limit").is_some();
        let plain = self.query.text("resourceVersionMatch").is_none();
        let continues = self.query.text("continue").is_some();
        let at_version = self.names_version() && (exact || (plain && pages));
        self.is(&["list"]) && (continues || at_version)
    }
}

impl Action {
    pub(super) fn applies_to(&self, info: &RequestInfo<'_>) -> bool {
        match self {
            Self::Delay(_)
            | Self::Refuse(_)
            | Self::NoAnswer
            | Self::Disconnect
            | Self::LoseReply
            | Self::DelayReply(_)
            | Self::NoReply
            | Self::CutBody(_)
            | Self::SkipVersions(_)
            | Self::Bandwidth(_)
            | Self::Truncate(_)
            | Self::Garble
            | Self::Html => true,
            // As WithMaxInFlightLimit, which does not count long-running requests.
            Self::LimitRequests(_) => &*info.request.verb != "watch",
            // Other reads take the newest state, which cannot expire.
            Self::Expire | Self::Gone => info.watches_from_version() || info.lists_old_state(),
            Self::StaleRead => info.is(&["get", "list", "watch"]) && info.version() == "0",
            Self::Conflict => info.is(&["update", "patch"]),
            Self::EndWatch(_) | Self::CutWatch(_) | Self::HangWatch(_) => info.is(&["watch"]),
            Self::DuplicateEvents => info.is(&["watch"]),
            Self::ReplayEvents(_) | Self::SkipStates => info.watches_from_version(),
            Self::Freeze => info.is(&["get", "list", "watch"]) && !info.lists_old_state(),
            Self::Recreate(_) => !info.request.resource.is_empty(),
            Self::Reject(_) => info.is(&["create", "update", "patch", "delete"]),
            Self::ExceedQuota(_) => info.is(&["create"]),
            Self::LegacyDiscovery => matches!(&*info.request.path, "/api" | "/apis"),
            Self::RefuseWatchList => info.asks_for_initial_events(),
            Self::OmitInitialEnd => {
                let from_state = info.asks_for_initial_events() || !info.names_version();
                info.is(&["watch"]) && from_state
            }
        }
    }
}
