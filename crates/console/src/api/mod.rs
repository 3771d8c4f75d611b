//! The types of the JSON API under `/api/v1`.
//!
//! | route | response |
//! |---|---|
//! | `GET /api/v1/overview` | [`Overview`] |
//! | `GET /api/v1/overview?watch=true` | the same, every second, as server-sent events named `overview` |
//! | `GET /api/v1/controllers/{kind}` | [`ControllerDetail`] |
//! | `GET /api/v1/controllers/{kind}/keys/{key}` | [`KeyDetail`] |
//! | `GET /api/v1/names` | a list of [`KindNames`]: the kinds with a controller, as discovery names them |
//! | `GET /api/v1/plan` | [`Plan`]: the writes that operators in plan mode would send |
//! | `GET /api/v1/health` | [`Health`] |
//! | `POST /api/v1/actions` | [`Done`]; the body is an [`Action`] |
//! | `GET /openapi.json` | a description of the API as OpenAPI 3.1 |
//!
//! `{kind}` is `GROUP~VERSION~KIND` with `core` for the core group, such as `apps~v1~Deployment` ([`KindRef::segment`],
//! [`kind_of`]). `{key}` is `NAMESPACE~NAME`, or `~NAME` for a cluster-scoped object ([`key_segment`], [`key_of`]).
//! `?context=ID` selects a factory by its context id; without it, the first factory that has the kind is used. Errors
//! are `Status` objects, as from the API server.
//!
//! Durations are seconds. Times are RFC 3339 in UTC. No response contains the content of objects; a change is described
//! by the paths of the fields that differ.

mod action;
mod cache;
mod controller;
mod key;
mod names;
#[cfg(test)]
mod openapi_tests;
mod overview;
mod state;

pub use action::{Action, Done};
pub use cache::Cache;
pub use controller::{
    Controller, ControllerDetail, Failing, GivenUp, Handler, HotLoop, InProgress, Quantiles, Queue,
    QueuedKey, QueuedLane, Sample, Slow,
};
pub use key::{CallInfo, CauseInfo, KeyDetail, Link, RunInfo, RunLink};
pub use names::KindNames;
pub use overview::{Allowed, Overview, Program};
pub use state::{Check, Guard, GuardRef, Health, Lease, Plan, PlannedWrite, Shards};

use lariat_core::{Gvk, ObjectKey};
use serde::{Deserialize, Serialize};

/// A kind within a factory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct KindRef {
    /// The context id of the factory; empty for the only one.
    pub context: String,
    /// The API group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
}

impl KindRef {
    /// Creates a reference from a context id and a kind.
    #[must_use]
    pub fn new(context: &str, gvk: &Gvk) -> Self {
        Self {
            context: context.to_owned(),
            group: gvk.group().to_owned(),
            version: gvk.version().to_owned(),
            kind: gvk.kind().to_owned(),
        }
    }

    /// Returns the path segment, such as `apps~v1~Deployment`.
    ///
    /// ```
    /// use lariat::console::api::{KindRef, kind_of};
    /// use lariat::Gvk;
    ///
    /// let gvk = Gvk::new("apps", "v1", "Deployment");
    /// let segment = KindRef::new("", &gvk).segment();
    /// assert_eq!(segment, "apps~v1~Deployment");
    /// assert_eq!(kind_of(&segment), Some(gvk));
    /// ```
    #[must_use]
    pub fn segment(&self) -> String {
        let group = if self.group.is_empty() {
            "core"
        } else {
            &self.group
        };
        format!("{group}~{}~{}", self.version, self.kind)
    }

    /// Returns the kind.
    #[must_use]
    pub fn gvk(&self) -> Gvk {
        Gvk::new(&self.group, &self.version, &self.kind)
    }
}

/// Returns the kind of a path segment; `None` if it has no kind.
///
/// ```
/// use lariat::console::api::kind_of;
/// use lariat::Gvk;
///
/// assert_eq!(kind_of("core~v1~Pod"), Some(Gvk::new("", "v1", "Pod")));
/// assert_eq!(kind_of("Pod"), None);
/// ```
#[must_use]
pub fn kind_of(segment: &str) -> Option<Gvk> {
    let mut parts = segment.split('~');
    let (group, version, kind) = (parts.next()?, parts.next()?, parts.next()?);
    let is_kind = parts.next().is_none() && !version.is_empty() && !kind.is_empty();
    let group = if group == "core" { "" } else { group };
    is_kind.then(|| Gvk::new(group, version, kind))
}

/// Returns the path segment of a key, such as `default~web-0` or `~node-1`.
///
/// ```
/// use lariat::console::api::{key_of, key_segment};
/// use lariat::ObjectKey;
///
/// let key = ObjectKey::namespaced("default", "web-0");
/// assert_eq!(key_segment(&key), "default~web-0");
/// assert_eq!(key_of("default~web-0"), Some(key));
/// ```
#[must_use]
pub fn key_segment(key: &ObjectKey) -> String {
    format!("{}~{}", key.namespace().unwrap_or_default(), key.name())
}

/// Returns the key of a path segment; `None` if it has no key.
///
/// ```
/// use lariat::console::api::key_of;
/// use lariat::ObjectKey;
///
/// assert_eq!(key_of("~node-1"), Some(ObjectKey::cluster("node-1")));
/// assert_eq!(key_of("node-1"), None);
/// ```
#[must_use]
pub fn key_of(segment: &str) -> Option<ObjectKey> {
    let (namespace, name) = segment.split_once('~')?;
    let key = if namespace.is_empty() {
        ObjectKey::cluster(name)
    } else {
        ObjectKey::namespaced(namespace, name)
    };
    (!name.is_empty() && !name.contains('~')).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_a_kind_is_not_that_of_its_objects() {
        // A kind is flattened into other types, which must not have fields of the same names.
        let json = serde_json::json!({
            "context": "", "group": "apps", "version": "v1", "kind": "Deployment", "namespace": "shop", "name": "web",
            "resourceVersion": "4711", "queued": null, "inProgress": null, "givenUp": [],
            "hotLoop": null, "runs": [],
        });
        let key: KeyDetail = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(
            key.kind,
            KindRef::new("", &Gvk::new("apps", "v1", "Deployment"))
        );
        assert_eq!(key.resource_version.as_deref(), Some("4711"));
        assert_eq!(serde_json::to_value(&key).unwrap(), json);
    }

    #[test]
    fn a_kind_and_a_key_are_one_segment_each() {
        for gvk in [
            Gvk::new("", "v1", "Pod"),
            Gvk::new("apps", "v1", "Deployment"),
        ] {
            assert_eq!(kind_of(&KindRef::new("", &gvk).segment()), Some(gvk));
        }
        for key in [
            ObjectKey::cluster("node-1"),
            ObjectKey::namespaced("a", "b"),
        ] {
            assert_eq!(key_of(&key_segment(&key)), Some(key));
        }
        for bad in ["", "core", "core~v1", "core~v1~", "a~b~c~d"] {
            assert_eq!(kind_of(bad), None, "{bad}");
        }
        for bad in ["", "a", "a~", "a~b~c"] {
            assert_eq!(key_of(bad), None, "{bad}");
        }
    }
}
