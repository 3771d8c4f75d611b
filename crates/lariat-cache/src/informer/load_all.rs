//! Loading many objects: one list instead of a request for each.

use std::collections::HashMap;
use std::sync::Arc;

use http::Request;
use lariat_core::{ObjectKey, ResourceKind, Scope};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time;

use super::core::Core;
use super::load::{ANSWER_TIMEOUT, LoadError, UPGRADE_WAIT, is_as_new, is_same_state};
use crate::reflector::PageTokens;
use crate::selection::Selection;
use crate::store::{CachedObject, Content, Query};

/// How many objects are fetched one by one before a list is requested.
const FEW: usize = 4;

/// The part of the listed objects that must lack content; otherwise they are fetched one by one.
///
/// A query by owner selects few of the objects that the API server would list.
const WORTH_A_LIST: usize = 4;

/// The number of objects in a page.
const PAGE: &str = "500";

/// How often a list begins again after its continue token has expired.
const RESTARTS: usize = 2;

/// A page of a list, whose items are not decoded.
#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: PageMetadata,
    #[serde(default)]
    items: Option<Vec<Box<RawValue>>>,
}

#[derive(Default, Deserialize)]
struct PageMetadata {
    /// The token of the next page; empty in the last one.
    #[serde(default, rename = "continue")]
    token: String,
}

/// Listed objects, by key.
type Listed = HashMap<ObjectKey, Arc<CachedObject>>;

impl Core {
    /// Returns the objects that a query selects, with content, fetched where only metadata is cached.
    pub(super) async fn load_all(
        &self,
        query: &Query,
    ) -> Result<Vec<Arc<CachedObject>>, LoadError> {
        let mut objects = self.store().select(query);
        let is_awaited =
            |object: &Arc<CachedObject>| !object.has_content() && self.awaits_content(object.key());
        if objects.iter().any(is_awaited) {
            // As in `load`: the list of the watch that is being upgraded has all of them.
            let _ = time::timeout(UPGRADE_WAIT, self.synced(Content::Whole)).await;
            objects = self.store().select(query);
        }
        let listed = if self.is_worth_a_list(&objects, query) {
            self.list_content(query).await?
        } else {
            Listed::default()
        };
        let mut loaded = Vec::with_capacity(objects.len());
        for cached in objects {
            if cached.has_content() {
                loaded.push(cached);
                continue;
            }
            let found = listed.get(cached.key());
            match found.filter(|found| self.is_current(found, &cached)) {
                Some(found) => loaded.push(Arc::clone(found)),
                // Also if it was created, changed or deleted around the time of the list.
                None => loaded.extend(self.load(cached.key(), UPGRADE_WAIT).await?),
            }
        }
        Ok(loaded)
    }

    fn is_worth_a_list(&self, objects: &[Arc<CachedObject>], query: &Query) -> bool {
        let lacking = objects.iter().filter(|it| !it.has_content()).count();
        let is_most = || {
            let listed = self.store().select(&query.clone().any_owner());
            lacking * WORTH_A_LIST >= listed.len()
        };
        lacking > FEW && (!query.has_owner() || is_most())
    }

    /// Returns whether a listed object is no older than the cached one, which was `before` before the list.
    fn is_current(&self, listed: &CachedObject, before: &CachedObject) -> bool {
        let now = self.store().get(before.key());
        now.is_some_and(|now| is_same_state(&now, before) || is_as_new(Some(listed), &now))
    }

    /// Lists the objects that a query and the selection of the cache have in common.
    async fn list_content(&self, query: &Query) -> Result<Listed, LoadError> {
        let gvk = self.gvk();
        let resource = self.client.resource().await;
        let resource = resource.map_err(|source| LoadError::Mapper {
            gvk: gvk.clone(),
            key: all_of(query.wanted_namespace()),
            source,
        })?;
        let selection = self.wanted.borrow().selection.clone();
        let forbidden = self.progress.forbidden();
        let is_readable = |namespace: &Option<Arc<str>>| {
            let is_forbidden = |it: &Arc<str>| forbidden.contains(it);
            !namespace.as_ref().is_some_and(is_forbidden)
        };
        let mut listed = Listed::new();
        let namespaces = namespaces(&resource, query, &selection);
        for namespace in namespaces.into_iter().filter(is_readable) {
            let path = resource.collection_path(namespace.as_deref());
            let mut restarts = RESTARTS;
            loop {
                let list = self.list_pages(&path, namespace.as_deref(), query, &mut listed);
                match list.await {
                    // The list took longer than its token lives. What was read before is not wrong: whether an object
                    // is as new as the cached one is judged one by one.
                    Err(error) if restarts > 0 && is_expired(&error) => restarts -= 1,
                    other => break other?,
                }
            }
        }
        Ok(listed)
    }

    async fn list_pages(
        &self,
        path: &str,
        namespace: Option<&str>,
        query: &Query,
        listed: &mut Listed,
    ) -> Result<(), LoadError> {
        let selection = self.wanted.borrow().selection.clone();
        let mut intake = self.intake(Content::Whole);
        let (mut token, mut tokens) = (String::new(), PageTokens::default());
        loop {
            let path = format!("{path}?{}", parameters(query, &selection, &token));
            let page = self.list_page(&path, namespace).await?;
            for json in page.items.into_iter().flatten() {
                // One that cannot be read is fetched alone, and that error names it.
                if let Ok(object) = intake.read(json.get().as_bytes()) {
                    let object = Arc::new(CachedObject::new(object));
                    listed.insert(object.key().clone(), object);
                }
            }
            if page.metadata.token.is_empty() {
                return Ok(());
            }
            token = tokens.next(page.metadata.token).map_err(|_| {
                let (gvk, key) = (self.gvk().clone(), all_of(namespace));
                let detail = "the continue token of a page leads to an earlier page".to_owned();
                LoadError::Malformed { gvk, key, detail }
            })?;
        }
    }

    async fn list_page(&self, path: &str, namespace: Option<&str>) -> Result<Page, LoadError> {
        let (gvk, key) = (self.gvk().clone(), all_of(namespace));
        let request = match Request::get(path).body(Vec::new()) {
            Ok(request) => request,
            Err(error) => {
                let source = kube::Error::HttpError(error);
                return Err(LoadError::Request { gvk, key, source });
            }
        };
        let client = self.client.reading_client();
        let limit = self.options.list_limit_in_bytes();
        let answer = time::timeout(ANSWER_TIMEOUT, client.request_text(request, limit));
        let json = match answer.await {
            Ok(Ok(json)) => json,
            Ok(Err(source)) => return Err(LoadError::Request { gvk, key, source }),
            Err(_) => {
                let after = ANSWER_TIMEOUT;
                return Err(LoadError::Unanswered { gvk, key, after });
            }
        };
        serde_json::from_str(&json).map_err(|_| {
            let detail = "it is not a list".to_owned();
            LoadError::Malformed { gvk, key, detail }
        })
    }
}

/// Returns whether a page was refused because its continue token has expired (410).
fn is_expired(error: &LoadError) -> bool {
    match error {
        LoadError::Request {
            source: kube::Error::Api(status),
            ..
        } => status.code == 410,
        _ => false,
    }
}

/// Returns the namespaces to list; `None` is all of them.
///
/// The process may have the right to list the namespaces of the selection only.
fn namespaces(
    resource: &ResourceKind,
    query: &Query,
    selection: &Selection,
) -> Vec<Option<Arc<str>>> {
    match (query.wanted_namespace(), selection.namespaces()) {
        _ if resource.scope() == Scope::Cluster => vec![None],
        (Some(namespace), _) => vec![Some(namespace.into())],
        (None, []) => vec![None],
        (None, some) => some.iter().cloned().map(Some).collect(),
    }
}

/// Returns the parameters of the request for a page; the first page has no token.
fn parameters(query: &Query, selection: &Selection, token: &str) -> String {
    let labels = query.wanted_labels().clone().and(selection.labels());
    let (labels, fields) = (labels.to_string(), selection.fields().to_string());
    let mut encoded = form_urlencoded::Serializer::new(String::new());
    encoded.append_pair("limit", PAGE);
    for (name, value) in [
        ("labelSelector", &*labels),
        ("fieldSelector", &*fields),
        ("continue", token),
    ] {
        if !value.is_empty() {
            encoded.append_pair(name, value);
        }
    }
    encoded.finish()
}

/// Returns the name of all objects of a namespace, or of all, for errors.
fn all_of(namespace: Option<&str>) -> ObjectKey {
    ObjectKey::namespaced(namespace.unwrap_or_default(), "*")
}
