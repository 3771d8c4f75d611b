//! The comparison of cache, handler and relation with the server.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, ListParams};
use lariat_cache::Storage;
use lariat_core::ObjectKey;

use crate::objects::{config_maps, is_of_walk, key_of, version_of};
use crate::walk::Walk;

impl Walk {
    /// The program's own writes are not undone in its cache.
    pub(crate) fn compare_own_writes(&mut self) {
        if !self.runs || !self.shows_own_writes() {
            return;
        }
        let informer = self.program.factory.caches().for_kind(config_maps());
        let mut wrong = Vec::new();
        for (key, (uid, at)) in &self.own {
            let cached = informer.store().get(key);
            // An object that is missing may not be selected; one of another uid is later.
            let Some(object) = cached.filter(|object| object.uid().to_string() == *uid) else {
                continue;
            };
            if object.version().number().unwrap_or(0) < *at {
                let is = object.version();
                wrong.push(format!("{key} is cached at {is}, and was written at {at}"));
            }
        }
        wrong.into_iter().for_each(|text| self.wrong(text));
    }

    /// Compares everything with the server, when nothing has happened for long.
    pub(crate) async fn compare(&mut self) {
        let all: Api<ConfigMap> = Api::all(self.cluster.client());
        let listed = all.list(&ListParams::default()).await;
        let mut server: BTreeMap<ObjectKey, ConfigMap> = BTreeMap::new();
        for object in listed.expect("others are not disturbed").items {
            let key = key_of(&object.metadata);
            if is_of_walk(&key) && self.selects(&key, &object) {
                server.insert(key, object);
            }
        }
        let versions = server
            .iter()
            .map(|(key, it)| (key.clone(), version_of(&it.metadata)));
        let versions: BTreeMap<ObjectKey, u64> = versions.collect();
        self.compare_cache(&versions);
        self.compare_handler(&versions);
        self.compare_content(&server);
        self.compare_relation().await;
    }

    fn compare_cache(&mut self, server: &BTreeMap<ObjectKey, u64>) {
        let informer = self.program.factory.caches().for_kind(config_maps());
        let snapshot = informer.store().snapshot();
        let cached = snapshot.iter().filter(|object| is_of_walk(object.key()));
        let cached: BTreeMap<ObjectKey, u64> = cached
            .map(|object| (object.key().clone(), object.version().number().unwrap_or(0)))
            .collect();
        if cached != *server {
            let (phase, selection) = (informer.status().phase, informer.selection());
            self.wrong(format!(
                "cached are {cached:?}, the server has {server:?} ({phase}, {selection:?})"
            ));
        }
    }

    fn compare_handler(&mut self, server: &BTreeMap<ObjectKey, u64>) {
        let seen = self.program.seen.lock().clone();
        for (key, at) in server {
            let last = seen.get(key).copied().flatten();
            if last != Some(*at) {
                self.wrong(format!(
                    "the handler has seen {key} at {last:?}, and not at {at}"
                ));
            }
        }
        for (key, last) in &seen {
            if is_of_walk(key) && last.is_some() && !server.contains_key(key) {
                self.wrong(format!(
                    "the handler was not called for the end of {key}: {last:?}"
                ));
            }
        }
    }

    fn compare_content(&mut self, server: &BTreeMap<ObjectKey, ConfigMap>) {
        let informer = self.program.factory.caches().for_kind(config_maps());
        if self.options.reads_metadata || informer.status().storage == Storage::OnDemand {
            return;
        }
        let cache = informer.cache::<ConfigMap>();
        for (key, object) in server {
            let cached = cache.get(key);
            if !matches!(&cached, Ok(Some(cached)) if cached.data == object.data) {
                let error = cached.err();
                self.wrong(format!(
                    "the content of {key} differs, or is missing: {error:?}"
                ));
            }
        }
    }

    /// The relation has read the last content of each Secret.
    async fn compare_relation(&mut self) {
        if !self.options.relates {
            return;
        }
        let all: Api<Secret> = Api::all(self.cluster.client());
        let listed = all.list(&ListParams::default()).await;
        let related = self.program.related.lock().clone();
        for secret in listed.expect("others are not disturbed").items {
            let (key, at) = (key_of(&secret.metadata), version_of(&secret.metadata));
            let last = related.get(&key).copied();
            if is_of_walk(&key) && last != Some(at) {
                self.wrong(format!(
                    "the relation has read {key} at {last:?}, and not at {at}"
                ));
            }
        }
    }

    fn selects(&self, key: &ObjectKey, object: &ConfigMap) -> bool {
        let namespaces = self.selection.namespaces();
        let is_in =
            namespaces.is_empty() || namespaces.iter().any(|it| Some(&**it) == key.namespace());
        let by_field = self.selection.fields().matches(|path| match path {
            "metadata.name" => key.name(),
            _ => "",
        });
        let app = object
            .metadata
            .labels
            .as_ref()
            .and_then(|labels| labels.get("app"));
        let app = app.map(String::as_str);
        let by_label = match &*self.selection.labels().to_string() {
            "app=web" => app == Some("web"),
            "app in (web,db)" => matches!(app, Some("web" | "db")),
            "app!=x" => app != Some("x"),
            _ => true,
        };
        is_in && by_field && by_label
    }
}
