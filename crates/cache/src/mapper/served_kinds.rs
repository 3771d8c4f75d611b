//! Surveys: all kinds that an API server serves.

use std::collections::HashSet;

use lariat_core::{Gvk, ResourceKind};

use super::aggregated::{self, Paths, Served};
use super::{MapperError, RestMapper, legacy};

/// The kinds that can be listed and watched, each in its group's preferred version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServedKinds {
    /// The kinds.
    pub kinds: Vec<ResourceKind>,
    /// Kinds that can be listed and not watched, each in the first version of its group that serves it.
    ///
    /// There are no caches of them.
    pub unwatchable: Vec<ResourceKind>,
    /// The paths of groups and versions whose server does not answer.
    ///
    /// The absence of a kind of theirs in `kinds` has no meaning.
    pub unavailable: Vec<String>,
}

/// The paths of core kinds, and of all others.
const ROOTS: [&str; 2] = ["/api", "/apis"];

impl RestMapper {
    /// Requests all kinds that the API server serves, without cached results.
    ///
    /// This takes one request for core kinds and one for all others if the server supports aggregated discovery, and
    /// otherwise one for each group and version. Groups that do not answer are listed in [`ServedKinds::unavailable`].
    ///
    /// ```no_run
    /// use lariat::cache::{MapperError, RestMapper};
    ///
    /// # async fn example(mapper: &RestMapper) -> Result<(), MapperError> {
    /// for kind in mapper.served_kinds().await?.kinds {
    ///     println!("{} {}", kind.gvk(), kind.plural());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails if the list of groups cannot be read.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the requests in flight and loses nothing else.
    pub async fn served_kinds(&self) -> Result<ServedKinds, MapperError> {
        let mut served_kinds = ServedKinds::default();
        served_kinds.add(self.all().await?);
        Ok(served_kinds)
    }

    /// Requests the kinds of all groups and versions, by path.
    async fn all(&self) -> Result<Paths, MapperError> {
        let mut all = Paths::new();
        for root in ROOTS {
            let failed = |source| MapperError::discovery(root, source);
            let text = self.get(root, aggregated::ACCEPTED).await.map_err(failed)?;
            all.extend(match aggregated::served_kinds(&text) {
                Some(paths) => paths,
                None => {
                    let versions = legacy::versions(&text).map_err(kube::Error::SerdeError);
                    self.ask_each(versions.map_err(failed)?).await
                }
            });
        }
        Ok(all)
    }

    /// Requests the kinds of all groups in two requests; none if the server has no aggregated discovery.
    pub(super) async fn all_at_once(&self) -> Paths {
        let mut all = Paths::new();
        for root in ROOTS {
            let text = self.get(root, aggregated::ACCEPTED).await;
            let paths = text.ok().and_then(|text| aggregated::served_kinds(&text));
            all.extend(paths.into_iter().flatten());
        }
        all
    }

    async fn ask_each(&self, versions: Vec<String>) -> Paths {
        let mut paths = Vec::new();
        for path in versions {
            let answer = self.get(&path, legacy::ACCEPTED).await.ok();
            let served = answer.and_then(|text| legacy::served_kinds(&text).ok());
            paths.push((path, served));
        }
        paths
    }
}

impl ServedKinds {
    /// Returns whether the group of a kind does not answer.
    ///
    /// Then nothing is known about the kind.
    #[must_use]
    pub fn is_unavailable(&self, gvk: &Gvk) -> bool {
        let path = gvk.api_path();
        let group = path.rsplit_once('/').map_or(&*path, |(group, _)| group);
        let mut groups = self
            .unavailable
            .iter()
            .filter_map(|path| path.rsplit_once('/'));
        groups.any(|(other, _)| other == group)
    }

    /// Adds the resources that are served under paths.
    ///
    /// Of several versions of a resource, the first one is used.
    fn add(&mut self, paths: Paths) {
        let mut seen = HashSet::new();
        for (path, served) in paths {
            let Some(served) = served else {
                self.unavailable.push(path);
                continue;
            };
            for Served {
                resource,
                is_listable,
                is_watchable,
            } in served
            {
                let name = (
                    resource.gvk().group().to_owned(),
                    resource.plural().to_owned(),
                );
                if is_listable && seen.insert(name) {
                    let kinds = if is_watchable {
                        &mut self.kinds
                    } else {
                        &mut self.unwatchable
                    };
                    kinds.push(resource);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn names(served_kinds: &ServedKinds) -> Vec<String> {
        let names = served_kinds.kinds.iter();
        names.map(|kind| kind.gvk().to_string()).collect()
    }

    #[test]
    fn of_several_versions_the_preferred_is_taken_and_silent_servers_are_named() {
        let resource = |plural: &str, kind: &str, verbs: &[&str]| {
            json!({"resource": plural, "scope": "Namespaced", "verbs": verbs,
                "responseKind": {"group": "", "version": "", "kind": kind}})
        };
        let both = &["list", "watch"][..];
        let document = json!({"kind": "APIGroupDiscoveryList", "items": [
            {"metadata": {"name": "demo.dev"}, "versions": [
                {"version": "v2", "resources": [resource("widgets", "Widget", both)]},
                {"version": "v1", "resources": [
                    resource("widgets", "Widget", both),
                    resource("old", "Old", both),
                    resource("reviews", "Review", &["create"]),
                ]},
            ]},
            {"metadata": {"name": "gone.dev"}, "versions": [{"version": "v1", "freshness": "Stale"}]},
        ]});
        let mut served_kinds = ServedKinds::default();
        served_kinds.add(aggregated::served_kinds(&document.to_string()).unwrap());
        assert_eq!(
            names(&served_kinds),
            ["demo.dev/v2 Widget", "demo.dev/v1 Old"]
        );
        assert_eq!(served_kinds.unavailable, ["/apis/gone.dev/v1"]);
    }

    #[test]
    fn lists_of_groups_are_read_in_the_order_of_preference() {
        let core = json!({"kind": "APIVersions", "versions": ["v1"]});
        assert_eq!(legacy::versions(&core.to_string()).unwrap(), ["/api/v1"]);
        let version = |name: &str| json!({"groupVersion": name, "version": "x"});
        let groups = json!({"kind": "APIGroupList", "groups": [{
            "name": "demo.dev",
            "versions": [version("demo.dev/v1"), version("demo.dev/v2")],
            "preferredVersion": version("demo.dev/v2"),
        }]});
        assert_eq!(
            legacy::versions(&groups.to_string()).unwrap(),
            ["/apis/demo.dev/v2", "/apis/demo.dev/v1"]
        );
    }
}
