//! Handlers that keep books on what they are called for.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use lariat::CachedObject;
use lariat::kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use lariat::prelude::*;
use parking_lot::Mutex;
use serde_json::json;

/// The label of the objects that tests make.
///
/// Controllers put objects of their own into every namespace, such as the ConfigMap `kube-root-ca.crt`.
pub(crate) const LABEL: &str = "lariat-test";

/// The last state a handler saw of each object of a test in one namespace.
#[derive(Debug, Clone)]
pub(crate) struct Books {
    namespace: Arc<str>,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Debug, Default)]
struct Seen {
    /// The value of each object that was there at its last call.
    last: BTreeMap<String, String>,
    calls: usize,
    /// The values of deleted objects.
    deleted: Vec<(String, String)>,
    causes: Vec<String>,
}

impl Books {
    pub(crate) fn new(namespace: &str) -> Self {
        Self {
            namespace: namespace.into(),
            seen: Arc::default(),
        }
    }

    /// Returns a handler that writes into the books and does nothing else.
    pub(crate) fn keeper(&self) -> impl Handler<ConfigMap> {
        let books = self.clone();
        move |cx: Context<ConfigMap>| {
            let books = books.clone();
            async move {
                books.write(
                    &cx,
                    cx.object()?.as_deref().map(value),
                    cx.deleted()?.as_deref().map(value),
                );
                Ok(Outcome::done())
            }
        }
    }

    /// Writes a call down, unless it is about an object that no test made.
    pub(crate) fn write<K: lariat::cache::View>(
        &self,
        cx: &Context<K>,
        is: Option<String>,
        was: Option<String>,
    ) {
        let foreign = |object: &Arc<CachedObject>| object.labels().get(LABEL).is_none();
        let object = cx.raw().or_else(|| cx.last_known());
        if cx.key().namespace() != Some(&*self.namespace) || object.is_some_and(foreign) {
            return;
        }
        let name = cx.key().name().to_owned();
        let mut seen = self.seen.lock();
        seen.calls += 1;
        seen.causes.push(cx.causes().to_string());
        if let Some(was) = was {
            seen.deleted.push((name.clone(), was));
        }
        match is {
            Some(is) => seen.last.insert(name, is),
            None => seen.last.remove(&name),
        };
    }

    pub(crate) fn calls(&self) -> usize {
        self.seen.lock().calls
    }

    pub(crate) fn last(&self) -> BTreeMap<String, String> {
        self.seen.lock().last.clone()
    }

    pub(crate) fn deleted(&self) -> Vec<(String, String)> {
        self.seen.lock().deleted.clone()
    }

    pub(crate) fn causes(&self) -> Vec<String> {
        self.seen.lock().causes.clone()
    }

    /// Says in what the books differ from the truth.
    pub(crate) fn agree_with(&self, truth: &BTreeMap<String, String>) -> Result<()> {
        let last = self.last();
        let wrong = truth
            .iter()
            .find(|(name, value)| last.get(*name) != Some(value));
        if let Some((name, value)) = wrong {
            anyhow::bail!(
                "{name} is {value}, but was last seen as {:?}",
                last.get(name)
            );
        }
        let gone = last.keys().find(|name| !truth.contains_key(*name));
        ensure!(gone.is_none(), "{gone:?} is gone, but was not seen to go");
        Ok(())
    }
}

fn value(object: &ConfigMap) -> String {
    let data = object.data.as_ref().and_then(|data| data.get("value"));
    data.cloned().unwrap_or_default()
}

pub(crate) async fn create(api: &Api<ConfigMap>, name: &str, value: &str) -> Result<()> {
    let metadata = json!({"name": name, "labels": {LABEL: ""}});
    let object = json!({"metadata": metadata, "data": {"value": value}});
    api.create(&PostParams::default(), &serde_json::from_value(object)?)
        .await
        .context("create")?;
    Ok(())
}

pub(crate) async fn change(api: &Api<ConfigMap>, name: &str, value: &str) -> Result<()> {
    let patch = Patch::Merge(json!({"data": {"value": value}}));
    api.patch(name, &PatchParams::default(), &patch)
        .await
        .context("change")?;
    Ok(())
}

pub(crate) async fn delete(api: &Api<ConfigMap>, name: &str) -> Result<()> {
    api.delete(name, &DeleteParams::default())
        .await
        .context("delete")?;
    Ok(())
}
