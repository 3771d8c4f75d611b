//! Requests beside the watch: one object, or a list in pages.

use std::error::Error;
use std::time::Duration;

use lariat_client::is_missing;
use lariat_core::{Gvk, ObjectKey, ResourceKind, debug_as_description};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::core::Core;
use crate::reflector::{PageTokens, is_list_of};

/// The timeout of the API server's answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// How many bytes an object may have, as in a watch.
const OBJECT_LIMIT: usize = 16 * 1024 * 1024;

/// The number of objects in a page.
const PAGE: &str = "500";

/// How often a list begins again after its continue token has expired.
const RESTARTS: usize = 2;

/// The error of objects that could not be read from the API server.
///
/// Discovery failed, the API server did not answer within 30 seconds or refused, or the answer is malformed.
#[derive(thiserror::Error)]
#[error("{gvk} {key} cannot be read")]
#[non_exhaustive]
pub struct LoadError {
    /// The kind.
    pub gvk: Gvk,
    /// The object; `*` is the name of all objects of a list.
    pub key: ObjectKey,
    source: Box<dyn Error + Send + Sync>,
}

debug_as_description!(LoadError);

/// A page of a list, whose items are not decoded.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    metadata: PageMetadata,
    /// Null is an empty list of Go. An answer without items is not a list, so that nothing is missing in it.
    #[serde(deserialize_with = "Option::deserialize")]
    items: Option<Vec<Box<RawValue>>>,
}

#[derive(Default, Deserialize)]
struct PageMetadata {
    /// The token of the next page; empty in the last one.
    #[serde(default, rename = "continue")]
    token: String,
}

impl Core {
    /// Requests an object; `None` if it does not exist.
    pub(super) async fn read_object(&self, key: &ObjectKey) -> Result<Option<String>, LoadError> {
        let path = self.resource_of(key).await?.object_path(key);
        match self.get(&path, OBJECT_LIMIT).await {
            Ok(json) => Ok(Some(json)),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(self.unread(key, error)),
        }
    }

    /// Requests the objects of a namespace, or of all of them, and calls a function with the JSON of each.
    ///
    /// If a continue token expires, the list begins again, and the function is called again for the same objects.
    pub(super) async fn read_list(
        &self,
        namespace: Option<&str>,
        selectors: &[(&str, String)],
        mut each: impl FnMut(&[u8]),
    ) -> Result<(), LoadError> {
        let all = all_of(namespace);
        let path = self.resource_of(&all).await?.collection_path(namespace);
        let mut restarts = RESTARTS;
        loop {
            match self.read_pages(&path, selectors, &mut each).await {
                Err(error) if restarts > 0 && is_expired(&*error) => restarts -= 1,
                read => return read.map_err(|error| self.unread(&all, error)),
            }
        }
    }

    async fn read_pages(
        &self,
        path: &str,
        selectors: &[(&str, String)],
        each: &mut impl FnMut(&[u8]),
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let limit = self.options.list_limit_in_bytes();
        let (mut token, mut tokens) = (String::new(), PageTokens::default());
        loop {
            let path = format!("{path}?{}", parameters(selectors, &token));
            let json = self.get(&path, limit).await?;
            let page = serde_json::from_str::<Page>(&json).ok();
            let page = page.filter(|page| is_list_of(self.gvk(), &page.api_version, &page.kind));
            let page = page.ok_or("the answer is not a list of the kind")?;
            let items = page.items.into_iter().flatten();
            items.for_each(|json| each(json.get().as_bytes()));
            if page.metadata.token.is_empty() {
                return Ok(());
            }
            let next = tokens.next(page.metadata.token);
            token = next.map_err(|_| "the continue token of a page leads to an earlier page")?;
        }
    }

    async fn get(&self, path: &str, limit: usize) -> Result<String, kube::Error> {
        let client = self.client.reading_client();
        client
            .get(path, "application/json", limit, ANSWER_TIMEOUT)
            .await
    }

    /// Returns the resource of the kind, to read an object.
    pub(super) async fn resource_of(&self, key: &ObjectKey) -> Result<ResourceKind, LoadError> {
        let resource = self.client.resource().await;
        resource.map_err(|error| self.unread(key, error))
    }

    /// Returns the error of an object that could not be read.
    pub(super) fn unread(
        &self,
        key: &ObjectKey,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> LoadError {
        LoadError {
            gvk: self.gvk().clone(),
            key: key.clone(),
            source: source.into(),
        }
    }
}

/// Returns whether a continue token has expired: the list took longer than its token lives.
fn is_expired(error: &(dyn Error + Send + Sync + 'static)) -> bool {
    let refused = error.downcast_ref::<kube::Error>();
    matches!(refused, Some(kube::Error::Api(status)) if status.code == 410)
}

fn parameters(selectors: &[(&str, String)], token: &str) -> String {
    let mut encoded = form_urlencoded::Serializer::new(String::new());
    encoded.append_pair("limit", PAGE);
    let selectors = selectors.iter().map(|(name, value)| (*name, &**value));
    for (name, value) in selectors.chain([("continue", token)]) {
        if !value.is_empty() {
            encoded.append_pair(name, value);
        }
    }
    encoded.finish()
}

/// Returns the key that names all objects of a namespace, or of all, in an error.
pub(super) fn all_of(namespace: Option<&str>) -> ObjectKey {
    ObjectKey::namespaced(namespace.unwrap_or_default(), "*")
}
