//! Which kinds a set has: noted on the owner, so that a later process prunes what an earlier one applied.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::api::PatchParams;
use lariat_cache::CachedObject;
use lariat_core::Gvk;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::error::ObjectError;
use super::marks::with_hash;
use super::resolve::Target;
use super::send::Endpoint;
use super::set::{Apply, Run};
use crate::wire;

/// How the keys of the annotations begin; the names of operator and set follow.
pub(crate) const NOTES: &str = "applied.lariat.dev/";

/// What a state of the owner notes.
#[derive(Default)]
struct Note {
    kinds: BTreeSet<Gvk>,
    /// Whether some of it is noted under a former name of the set.
    is_former: bool,
    /// The version of the state.
    version: String,
}

impl Run<'_> {
    /// Returns the kinds that are noted on the owner.
    pub(super) async fn known_kinds(&self) -> Result<BTreeSet<Gvk>, ObjectError> {
        Ok(self.note().await?.kinds)
    }

    /// Returns what the owner notes in its newest cached state; where the cache may leave it out, the API server is
    /// asked.
    async fn note(&self) -> Result<Note, ObjectError> {
        let Apply {
            shared, owner_gvk, ..
        } = self.set;
        let is_shown = wire::is_shown(&shared.caches, owner_gvk, "/metadata/annotations");
        if self.set.options.annotates
            && !is_shown
            && let Some(note) = self.live_note().await?
        {
            return Ok(note);
        }
        let owner = self.owner_now();
        let json = owner.json();
        Ok(Note {
            version: owner.version().to_string(),
            ..self.read_note(json.as_deref().unwrap_or_default())
        })
    }

    fn read_note(&self, json: &[u8]) -> Note {
        let Metadata {
            annotations,
            resource_version,
            ..
        } = metadata(json);
        let annotations = annotations.unwrap_or_default();
        let keys = self.annotation_keys();
        let noted = keys.iter().filter_map(|key| annotations.get(key)?.as_str());
        let kinds = noted.flat_map(|text| text.split(','));
        Note {
            kinds: kinds.filter_map(|kind| kind.parse().ok()).collect(),
            is_former: keys.iter().skip(1).any(|key| annotations.contains_key(key)),
            version: resource_version,
        }
    }

    /// Returns the newest cached state of the owner: an earlier call of the same reconcile may have annotated it.
    fn owner_now(&self) -> Arc<CachedObject> {
        let owner = &self.set.owner;
        let informer = self.informer(&self.set.owner_gvk);
        let cached = informer.and_then(|informer| informer.store().get(owner.key()));
        let cached = cached.filter(|cached| cached.uid() == owner.uid());
        cached.unwrap_or_else(|| Arc::clone(owner))
    }

    /// Returns the keys of the annotations: the one of the set, then those of its former names.
    fn annotation_keys(&self) -> Vec<String> {
        let marks = &self.set.marks;
        let sets = std::iter::once(&marks.set).chain(&marks.former);
        let key = |set: &String| {
            let operator = &marks.operator;
            // Both names may have dots, and read the same together with others.
            let value = with_hash(&format!("{operator}.{set}"), &format!("{operator}\0{set}"));
            format!("{NOTES}{value}")
        };
        sets.map(key).collect()
    }

    /// Notes kinds that are new, before any object of them exists, and moves what is noted under former names; returns
    /// the kinds that were noted before.
    pub(super) async fn note_kinds(
        &self,
        targets: &[Target],
    ) -> Result<BTreeSet<Gvk>, ObjectError> {
        let wanted: BTreeSet<Gvk> = targets.iter().map(|each| each.gvk().clone()).collect();
        let note = self.note().await?;
        let known = note.kinds.clone();
        match self.add_kinds(note, &wanted).await {
            // Another call or process may have noted others since.
            Err(error) if Self::may_be_gone(&error) => {
                let note = self.live_note().await?.ok_or(ObjectError::OwnerGone)?;
                self.add_kinds(note, &wanted).await?;
            }
            result => result?,
        }
        Ok(known)
    }

    async fn add_kinds(&self, note: Note, wanted: &BTreeSet<Gvk>) -> Result<(), ObjectError> {
        let is_noted = wanted.is_subset(&note.kinds) && !note.is_former;
        if !self.set.options.annotates || is_noted {
            return Ok(());
        }
        let all = note.kinds.union(wanted).cloned().collect();
        self.annotate(&all, &note.version).await
    }

    /// Takes kinds away of which nothing is left. If that fails, the next call does it.
    pub(super) async fn forget_kinds(&self, known: &BTreeSet<Gvk>, left: &BTreeSet<Gvk>) {
        if !self.set.options.annotates || known.is_subset(left) {
            return;
        }
        if let Err(error) = self.keep_kinds(known, left).await {
            let (gvk, key) = (&self.set.owner_gvk, self.set.owner.key());
            tracing::debug!(%gvk, %key, %error, "kinds of which nothing is left stay noted");
        }
    }

    async fn keep_kinds(
        &self,
        known: &BTreeSet<Gvk>,
        left: &BTreeSet<Gvk>,
    ) -> Result<(), ObjectError> {
        let now = self.note().await?;
        // What somebody else has noted since was not looked through.
        let others = now.kinds.difference(known).cloned();
        let left = left.iter().cloned().chain(others).collect();
        self.annotate(&left, &now.version).await
    }

    /// Writes kinds to the owner, if it has not changed since they were read.
    async fn annotate(&self, kinds: &BTreeSet<Gvk>, version: &str) -> Result<(), ObjectError> {
        let text = |gvk: &Gvk| format!("{}/{}", gvk.api_version(), gvk.kind());
        let kinds: Vec<String> = kinds.iter().map(text).collect();
        let mut values = Map::new();
        for key in self.annotation_keys() {
            // Those of former names have moved to the first.
            let value = match values.is_empty() && !kinds.is_empty() {
                true => json!(kinds.join(",")),
                false => Value::Null,
            };
            values.insert(key, value);
        }
        // The uid makes sure that it is this owner and no other of the same name.
        let uid = self.set.owner.uid().to_string();
        let metadata = json!({"uid": uid, "resourceVersion": version, "annotations": values});
        let patch = json!({"metadata": metadata});
        let clients = self.set.shared.caches.clients();
        let resource = clients.for_kind(&self.set.owner_gvk).resource().await?;
        let key = self.set.owner.key();
        let params = PatchParams {
            field_manager: Some(self.set.shared.name.to_string()),
            ..PatchParams::default()
        };
        let endpoint = Endpoint::new(&self.set.client, &resource, key);
        endpoint.merge(key.name(), &patch, &params).await
    }

    /// Asks the API server what the owner notes; `None` if it is gone, or another.
    async fn live_note(&self) -> Result<Option<Note>, ObjectError> {
        let clients = self.set.shared.caches.clients();
        let resource = clients.for_kind(&self.set.owner_gvk).resource().await?;
        let key = self.set.owner.key();
        let endpoint = Endpoint::new(&self.set.client, &resource, key);
        let json = endpoint.get(key.name()).await?.unwrap_or_default();
        let is_owner = metadata(json.as_bytes()).uid == self.set.owner.uid().to_string();
        Ok(is_owner.then(|| self.read_note(json.as_bytes())))
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
