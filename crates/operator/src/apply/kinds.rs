//! Records the kinds and namespaces of a set on its owner.
//!
//! A set may lose its last object of a kind while the process is down, or a new version may no longer apply the kind at
//! all. The record tells the next process which kinds and namespaces to search for objects to prune, even if it neither
//! caches nor applies them. It is an annotation of the owner such as `v1/ConfigMap,apps/v1/Deployment;shop,web`: the
//! kinds, then the namespaces other than the owner's (all namespaces, for a set without owner references).
//!
//! As in KEP-3659 (`contains-group-kinds`, `additional-namespaces`), a kind is recorded before the first object of it
//! is created. It is removed once a search finds no object left.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::api::PatchParams;
use lariat_cache::CachedObject;
use lariat_core::{Gvk, RawObject};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::error::ObjectError;
use super::marks::with_hash;
use super::meta::Meta;
use super::resolve::Target;
use super::run::Run;
use super::set::Apply;
use crate::names::NOTES;
use crate::wire;

/// Stands for more namespaces than can be recorded: all namespaces are searched.
pub(super) const EVERYWHERE: &str = "*";

/// The bound of the recorded namespaces, from which one list of all namespaces replaces a list of each.
///
/// It also holds for what is read: whoever may write the owner may write its record, and each name is a request.
const MOST_NAMESPACES: usize = 50;

/// The kinds and namespaces of a set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) kinds: BTreeSet<Gvk>,
    /// The namespaces other than the owner's; all, for a set without owner references.
    pub(super) namespaces: BTreeSet<String>,
}

/// The extent that was recorded before an apply.
pub(super) struct Known {
    pub(super) extent: Extent,
    /// Whether the owner has records of other sets.
    pub(super) has_siblings: bool,
}

/// The record, as read from one state of the owner.
#[derive(Default)]
struct Record {
    extent: Extent,
    /// Whether a part of it is under a former name of the set.
    is_former: bool,
    /// Whether the owner has records of other sets.
    has_siblings: bool,
    /// The resource version of the owner's state.
    version: String,
}

impl Extent {
    /// Parses a record, and ignores unknown parts.
    fn read(text: &str) -> Self {
        let (kinds, namespaces) = text.split_once(';').unwrap_or((text, ""));
        let namespaces = namespaces.split(',').filter(|name| !name.is_empty());
        Self {
            kinds: kinds
                .split(',')
                .filter_map(|kind| kind.parse().ok())
                .collect(),
            namespaces: namespaces.map(ToOwned::to_owned).collect(),
        }
        .bounded()
    }

    /// Returns the record as text, or `None` if it is empty.
    fn text(&self) -> Option<String> {
        if self.kinds.is_empty() {
            return None;
        }
        let text = |gvk: &Gvk| format!("{}/{}", gvk.api_version(), gvk.kind());
        let kinds = self.kinds.iter().map(text).collect::<Vec<_>>().join(",");
        if self.namespaces.is_empty() {
            return Some(kinds);
        }
        let namespaces: Vec<&str> = self.namespaces.iter().map(|name| &**name).collect();
        Some(format!("{kinds};{}", namespaces.join(",")))
    }

    /// Returns whether objects can be in any namespace.
    pub(super) fn is_everywhere(&self) -> bool {
        self.namespaces.contains(EVERYWHERE)
    }

    fn contains(&self, other: &Self) -> bool {
        let is_in = self.is_everywhere() || other.namespaces.is_subset(&self.namespaces);
        is_in && other.kinds.is_subset(&self.kinds)
    }

    fn union(mut self, other: &Self) -> Self {
        self.kinds.extend(other.kinds.iter().cloned());
        self.namespaces.extend(other.namespaces.iter().cloned());
        self.bounded()
    }

    /// Replaces too many namespaces by [`EVERYWHERE`].
    fn bounded(mut self) -> Self {
        if self.is_everywhere() || self.namespaces.len() > MOST_NAMESPACES {
            self.namespaces = BTreeSet::from([EVERYWHERE.to_owned()]);
        }
        self
    }

    /// Returns the part of this extent that is not in another.
    fn without(mut self, other: &Self) -> Self {
        self.kinds.retain(|kind| !other.kinds.contains(kind));
        self.namespaces
            .retain(|name| !other.namespaces.contains(name));
        self
    }
}

impl Run<'_> {
    /// Returns the extent of the wanted objects.
    pub(super) fn extent_of(&self, targets: &[Target]) -> Extent {
        let owner = self.set.owner.key().namespace();
        // The owner's own namespace is searched anyway, and need not be recorded.
        let own = owner.filter(|_| self.set.options.owned);
        let namespaces = targets.iter().filter_map(|each| each.key.namespace());
        let others = namespaces.filter(|name| Some(*name) != own);
        Extent {
            kinds: targets.iter().map(|each| each.gvk().clone()).collect(),
            namespaces: others.map(ToOwned::to_owned).collect(),
        }
        .bounded()
    }

    /// Returns the record in the owner's newest known state.
    ///
    /// It is read from the API server if the cache may lack annotations.
    async fn record(&self) -> Result<Record, ObjectError> {
        let Apply {
            operator,
            owner_gvk,
            ..
        } = self.set;
        // A transform may have removed annotations from the cache. A missing record must not be taken for an empty one.
        let is_shown = wire::is_shown(&operator.caches, owner_gvk, "/metadata/annotations");
        if self.set.options.annotates
            && !is_shown
            && let Some(record) = self.live_record().await?
        {
            return Ok(record);
        }
        let owner = self.owner_now();
        let json = owner.json();
        Ok(Record {
            version: owner.version().to_string(),
            ..self.parse_record(json.as_deref().unwrap_or_default())
        })
    }

    fn parse_record(&self, json: &[u8]) -> Record {
        let Metadata {
            annotations,
            resource_version,
            ..
        } = metadata(json);
        let annotations = annotations.unwrap_or_default();
        let keys = self.annotation_keys();
        let recorded = keys.iter().filter_map(|key| annotations.get(key)?.as_str());
        let none = Extent::default();
        Record {
            extent: recorded.fold(none, |all, text| all.union(&Extent::read(text))),
            is_former: keys.iter().skip(1).any(|key| annotations.contains_key(key)),
            has_siblings: annotations
                .keys()
                .any(|key| key.starts_with(NOTES) && !keys.contains(key)),
            version: resource_version,
        }
    }

    /// Returns the owner's newest cached state.
    ///
    /// It may be newer than the state that the call began with: an earlier apply of the same call may have written the
    /// annotation.
    fn owner_now(&self) -> Arc<CachedObject> {
        let owner = &self.set.owner;
        let informer = self.informer(&self.set.owner_gvk);
        let cached = informer
            .and_then(|informer| informer.store().get(owner.key()))
            .filter(|cached| cached.uid() == owner.uid());
        cached.unwrap_or_else(|| Arc::clone(owner))
    }

    /// Returns the keys of the annotations: the set's own, then those of former names.
    fn annotation_keys(&self) -> Vec<String> {
        let key = |(operator, set): (&str, &str)| {
            // Both names may contain dots: `a.b` and `c` would read like `a` and `b.c`. The hash tells them apart.
            let value = with_hash(&format!("{operator}.{set}"), &format!("{operator}\0{set}"));
            format!("{NOTES}{value}")
        };
        self.set.marks.names().map(key).collect()
    }

    /// Records new kinds and namespaces before the first object of them exists.
    ///
    /// Returns the former extent. Records under former names of the set are moved to the present name.
    pub(super) async fn record_extent(&self, targets: &[Target]) -> Result<Known, ObjectError> {
        let wanted = self.extent_of(targets);
        let record = self.record().await?;
        let known = Known {
            extent: record.extent.clone(),
            has_siblings: record.has_siblings,
        };
        match self.add_extent(record, &wanted).await {
            // A conflict: another call or process has changed the owner since, and may have recorded kinds of its own.
            // The record is read again, so that theirs is kept.
            Err(error) if Self::may_be_gone(&error) => {
                let record = self
                    .live_record()
                    .await?
                    .ok_or(ObjectError::OwnerNotFound)?;
                self.add_extent(record, &wanted).await?;
            }
            result => result?,
        }
        Ok(known)
    }

    async fn add_extent(&self, record: Record, wanted: &Extent) -> Result<(), ObjectError> {
        let is_recorded = record.extent.contains(wanted) && !record.is_former;
        if !self.set.options.annotates || is_recorded {
            return Ok(());
        }
        // The record only grows here. It shrinks after a search, when it is certain that nothing is left.
        let all = record.extent.union(wanted);
        self.annotate(&all, &record.version).await
    }

    /// Removes kinds and namespaces without objects; on failure the next call does it.
    pub(super) async fn forget_extent(&self, known: &Extent, left: &Extent) {
        if !self.set.options.annotates || left.contains(known) || self.is_dry {
            return;
        }
        if let Err(error) = self.keep_extent(known, left).await {
            let (gvk, key) = (&self.set.owner_gvk, self.set.owner.key());
            tracing::debug!(%gvk, %key, %error, "kinds without objects stay recorded on the owner");
        }
    }

    async fn keep_extent(&self, known: &Extent, left: &Extent) -> Result<(), ObjectError> {
        let now = self.record().await?;
        // Another process may have recorded kinds since the search. They were not searched, so they stay.
        let left = now.extent.without(known).union(left);
        self.annotate(&left, &now.version).await
    }

    /// Writes the record, unless the owner has changed since it was read.
    async fn annotate(&self, extent: &Extent, version: &str) -> Result<(), ObjectError> {
        // The resource version in the patch makes this a compare-and-swap: two processes cannot lose each other's
        // kinds.
        let mut record = extent.text();
        let mut values = Map::new();
        for key in self.annotation_keys() {
            // The first key gets the whole record, and those of former names are removed.
            values.insert(key, record.take().map_or(Value::Null, Value::String));
        }
        // With a uid the API server refuses the patch if the owner was deleted and recreated meanwhile.
        let uid = self.set.owner.uid().to_string();
        let metadata = json!({"uid": uid, "resourceVersion": version, "annotations": values});
        let patch = json!({"metadata": metadata});
        let clients = self.set.operator.caches.clients();
        let resource = clients.for_kind(&self.set.owner_gvk).resource().await?;
        let key = self.set.owner.key();
        let params = PatchParams {
            field_manager: Some(self.set.operator.name.to_string()),
            ..PatchParams::default()
        };
        let endpoint = self.endpoint(&resource, key);
        let answer = endpoint.merge(key.name(), &patch, &params).await?;
        self.saw_owner(&answer, version);
        Ok(())
    }

    /// Updates the owner's state of this call after the record was written.
    ///
    /// Without it, the next status write of the call would conflict with this one. A state that contains changes of
    /// others is not taken.
    fn saw_owner(&self, answer: &str, version: &str) {
        // A dry run changed nothing.
        if self.is_planning() {
            return;
        }
        let Ok(raw) = RawObject::parse(answer.as_bytes(), &self.set.owner_gvk) else {
            return;
        };
        self.set.call.saw_next(version, CachedObject::new(raw));
    }

    /// Returns the metadata of the object that has the owner's name, if there is one.
    pub(super) async fn live_owner(&self) -> Result<Option<Meta>, ObjectError> {
        let clients = self.set.operator.caches.clients();
        let resource = clients.for_kind(&self.set.owner_gvk).resource().await?;
        let key = self.set.owner.key();
        let endpoint = self.endpoint(&resource, key);
        endpoint.metadata(key.name()).await
    }

    /// Reads the record from the API server; `None` if the owner was deleted.
    async fn live_record(&self) -> Result<Option<Record>, ObjectError> {
        let clients = self.set.operator.caches.clients();
        let resource = clients.for_kind(&self.set.owner_gvk).resource().await?;
        let key = self.set.owner.key();
        let endpoint = self.endpoint(&resource, key);
        let json = endpoint.get(key.name()).await?.unwrap_or_default();
        let is_owner = metadata(json.as_bytes()).uid == self.set.owner.uid().to_string();
        Ok(is_owner.then(|| self.parse_record(json.as_bytes())))
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    uid: String,
    resource_version: String,
    annotations: Option<Map<String, Value>>,
}

fn metadata(json: &[u8]) -> Metadata {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Object {
        metadata: Metadata,
    }
    let object: Object = serde_json::from_slice(json).unwrap_or_default();
    object.metadata
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_as_it_was_written() {
        for text in [
            "v1/ConfigMap",
            "v1/ConfigMap,apps/v1/Deployment;shop,web",
            "v1/ConfigMap;*",
        ] {
            assert_eq!(Extent::read(text).text().as_deref(), Some(text));
        }
        assert_eq!(Extent::read("").text(), None);
        assert_eq!(Extent::read("nonsense,,;,").text(), None);
    }

    #[test]
    fn more_namespaces_than_there_is_room_for_are_everywhere() {
        let named = |count: usize| Extent {
            kinds: BTreeSet::from([Gvk::new("", "v1", "ConfigMap")]),
            namespaces: (0..count).map(|number| format!("n{number}")).collect(),
        };
        let most = named(MOST_NAMESPACES);
        assert!(!most.clone().bounded().is_everywhere());
        let all = named(MOST_NAMESPACES + 1).bounded();
        assert_eq!(all.text().as_deref(), Some("v1/ConfigMap;*"));
        assert!(all.contains(&most) && !most.contains(&all));
        assert_eq!(most.union(&all), all);
    }
}
