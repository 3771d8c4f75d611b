//! Which kinds a set has: noted on the owner, so that a later process prunes what an earlier one applied.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::api::PatchParams;
use lariat_cache::CachedObject;
use lariat_core::Gvk;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::error::ObjectError;
use super::marks::label_value;
use super::resolve::Target;
use super::send::Endpoint;
use super::set::Run;

/// Before the name of operator and set in the key of the annotation.
const PREFIX: &str = "applied.lariat.dev/";

impl Run<'_> {
    /// Returns the kinds that are noted on the owner, in its newest state.
    pub(super) fn known_kinds(&self) -> BTreeSet<Gvk> {
        let Some(json) = self.owner_now().json().map(|json| json.into_owned()) else {
            return BTreeSet::new();
        };
        let annotations = annotations(&json);
        let keys = self.annotation_keys();
        let noted = keys.iter().filter_map(|key| annotations.get(key)?.as_str());
        let kinds = noted.flat_map(|text| text.split(','));
        kinds.filter_map(|kind| kind.parse().ok()).collect()
    }

    /// Returns the newest cached state of the owner: an earlier call of the same reconcile may have annotated it.
    fn owner_now(&self) -> Arc<CachedObject> {
        let owner = &self.set.owner;
        let informer = self.caches.get(&self.set.owner_gvk);
        let cached = informer.and_then(|informer| informer.store().get(owner.key()));
        let cached = cached.filter(|cached| cached.uid() == owner.uid());
        cached.unwrap_or_else(|| Arc::clone(owner))
    }

    /// Returns the keys of the annotations: the one of the set, then those of its former names.
    fn annotation_keys(&self) -> Vec<String> {
        let marks = &self.set.marks;
        let sets = std::iter::once(&marks.set).chain(&marks.former);
        let key = |set: &String| {
            format!(
                "{PREFIX}{}",
                label_value(&format!("{}.{set}", marks.operator))
            )
        };
        sets.map(key).collect()
    }

    /// Notes kinds that are new, before any object of them exists.
    pub(super) async fn note_kinds(
        &self,
        known: &BTreeSet<Gvk>,
        targets: &[Target],
    ) -> Result<(), ObjectError> {
        let wanted: BTreeSet<Gvk> = targets.iter().map(|each| each.gvk().clone()).collect();
        if !self.set.options.annotates || wanted.is_subset(known) {
            return Ok(());
        }
        let all = known.union(&wanted).cloned().collect();
        match self.annotate(&all).await {
            Err(error) if Self::may_be_gone(&error) => match self.is_owner_there().await {
                Ok(false) => Err(ObjectError::OwnerGone),
                _ => Err(error),
            },
            result => result,
        }
    }

    /// Takes kinds away of which nothing is left. If that fails, the next call does it.
    pub(super) async fn forget_kinds(&self, known: &BTreeSet<Gvk>, left: &BTreeSet<Gvk>) {
        if !self.set.options.annotates || known.is_subset(left) {
            return;
        }
        if let Err(error) = self.annotate(left).await {
            let (gvk, key) = (&self.set.owner_gvk, self.set.owner.key());
            tracing::debug!(%gvk, %key, %error, "kinds of which nothing is left stay noted");
        }
    }

    async fn annotate(&self, kinds: &BTreeSet<Gvk>) -> Result<(), ObjectError> {
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
        let patch = json!({"metadata": {"uid": uid, "annotations": values}});
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

    async fn is_owner_there(&self) -> Result<bool, ObjectError> {
        let clients = self.set.shared.caches.clients();
        let resource = clients.for_kind(&self.set.owner_gvk).resource().await?;
        let key = self.set.owner.key();
        let endpoint = Endpoint::new(&self.set.client, &resource, key);
        let uid = endpoint.metadata(key.name()).await?.map(|meta| meta.uid);
        Ok(uid.is_some_and(|uid| uid == self.set.owner.uid().to_string()))
    }
}

fn annotations(json: &[u8]) -> Map<String, Value> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Object {
        metadata: Metadata,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Metadata {
        annotations: Option<Map<String, Value>>,
    }
    let object: Object = serde_json::from_slice(json).unwrap_or_default();
    object.metadata.annotations.unwrap_or_default()
}
