//! Which requests an action says anything about.

use lariat_apimachinery::kinds::Kinds;

use crate::fault::Action;
use crate::journal::Request;
use crate::wire::query::Query;

/// A request as rules see it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) request: &'a Request,
    pub(crate) query: &'a Query,
    pub(crate) kinds: &'a Kinds,
}

impl Asked<'_> {
    fn is(&self, verbs: &[&str]) -> bool {
        !self.request.resource.is_empty() && verbs.contains(&&*self.request.verb)
    }

    /// Returns whether it is about objects of a kind.
    pub(super) fn is_about(&self, kind: &str) -> bool {
        let catalog = self.kinds.catalog();
        let group = &self.request.group;
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
    pub(super) fn applies_to(&self, asked: &Asked<'_>) -> bool {
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
            Self::LimitRequests(_) => &*asked.request.verb != "watch",
            Self::Expire | Self::Gone => asked.watches_from_version() || asked.lists_old_state(),
            Self::StaleRead => asked.is(&["get", "list", "watch"]) && asked.version() == "0",
            Self::Conflict => asked.is(&["update", "patch"]),
            Self::EndWatch(_) | Self::CutWatch(_) | Self::HangWatch(_) => asked.is(&["watch"]),
            Self::DuplicateEvents => asked.is(&["watch"]),
            Self::ReplayEvents(_) | Self::SkipStates => asked.watches_from_version(),
            Self::Freeze => asked.is(&["get", "list", "watch"]) && !asked.lists_old_state(),
            Self::Recreate(_) => !asked.request.resource.is_empty(),
            Self::Reject(_) => asked.is(&["create", "update", "patch", "delete"]),
            Self::ExceedQuota(_) => asked.is(&["create"]),
            Self::LegacyDiscovery => matches!(&*asked.request.path, "/api" | "/apis"),
            Self::RefuseWatchList => asked.asks_for_initial_events(),
            Self::OmitInitialEnd => {
                let from_state = asked.asks_for_initial_events() || !asked.names_version();
                asked.is(&["watch"]) && from_state
            }
        }
    }
}
