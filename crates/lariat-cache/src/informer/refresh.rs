//! Refreshing: reading objects again after a write whose answer does not contain them.

use std::collections::HashMap;
use std::error::Error;
use std::time::Duration;

use http::Request;
use lariat_client::is_missing;
use lariat_core::{Gvk, LabelSelector, ObjectKey, Uid, debug_as_description};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time;

use super::core::Core;
use crate::client::Sent;
use crate::reflector::is_list_of;
use crate::store::{Content, Query};

/// The timeout of the API server's answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// The error of a refresh; the watch reports the states of the objects later.
#[derive(thiserror::Error)]
#[error("{gvk} cannot be refreshed")]
#[non_exhaustive]
pub struct RefreshError {
    /// The kind.
    pub gvk: Gvk,
    source: Box<dyn Error + Send + Sync>,
}

debug_as_description!(RefreshError);

/// The API server did not answer, or not with a list.
#[derive(Debug, thiserror::Error)]
enum BadAnswer {
    #[error("no answer within {0:?}")]
    Late(Duration),
    #[error("the answer is not a list of the kind")]
    NoList,
}

/// A list whose items are not decoded.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Items {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    /// Null is an empty list of Go. An answer without items is not a list, so that nothing is missing in it.
    #[serde(deserialize_with = "Option::deserialize")]
    items: Option<Vec<Box<RawValue>>>,
}

impl Core {
    /// Reads an object again and applies its state.
    pub(super) async fn refresh(&self, key: &ObjectKey) -> Result<(), RefreshError> {
        // Before the request: the answer is not older than the writes that were answered by then.
        let sent = Sent::next(self.store().get(key));
        let resource = self.client.resource().await;
        let resource = resource.map_err(|error| self.failed(error))?;
        match self.read_again(&resource.object_path(key)).await? {
            Some(json) => self.wrote(json.as_bytes(), Content::Whole, false, sent),
            None => {
                // It did not exist when the request was answered, whatever the watch has reported so far.
                if let Some(uid) = sent.before.as_ref().map(|before| before.uid().clone()) {
                    self.deleted(key, &uid, &sent);
                }
            }
        }
        Ok(())
    }

    /// Reads the objects with some labels again and applies their states.
    ///
    /// Objects in `deleted` that are missing in the answer are removed.
    pub(super) async fn refresh_all(
        &self,
        namespace: Option<&str>,
        labels: &LabelSelector,
        deleted: &[Uid],
    ) -> Result<(), RefreshError> {
        let query = namespace.map_or_else(Query::all, Query::in_namespace);
        let present = self.store().select(&query.labels(labels.clone()));
        // Before the request, as in `refresh`; one number for all, because they are read together.
        let number = Sent::next(None).number;
        let mut before: HashMap<Uid, Sent> = HashMap::new();
        for object in present {
            let (uid, before_it) = (object.uid().clone(), Some(object));
            let sent = Sent {
                before: before_it,
                number,
            };
            before.insert(uid, sent);
        }
        for json in self.list_again(namespace, labels).await? {
            let json = json.get().as_bytes();
            if let Ok(object) = self.intake(Content::MetadataOnly).read(json) {
                let sent = before.remove(object.uid());
                let unknown = Sent {
                    before: None,
                    number,
                };
                self.wrote(json, Content::Whole, false, sent.unwrap_or(unknown));
            }
        }
        for uid in deleted {
            let Some(sent) = before.remove(uid) else {
                continue;
            };
            let Some(object) = sent.before.clone() else {
                continue;
            };
            // With a finalizer it may still exist, with labels that do not match any more.
            if object.finalizers().next().is_none() {
                self.deleted(object.key(), uid, &sent);
            } else {
                // Read by name, whatever its labels are.
                self.refresh(object.key()).await?;
            }
        }
        Ok(())
    }

    async fn list_again(
        &self,
        namespace: Option<&str>,
        labels: &LabelSelector,
    ) -> Result<Vec<Box<RawValue>>, RefreshError> {
        let resource = self.client.resource().await;
        let resource = resource.map_err(|error| self.failed(error))?;
        let mut path = resource.collection_path(namespace);
        if !labels.is_empty() {
            let mut query = form_urlencoded::Serializer::new(format!("{path}?"));
            path = query
                .append_pair("labelSelector", &labels.to_string())
                .finish();
        }
        let json = self.read_again(&path).await?.unwrap_or_default();
        let list: Result<Items, _> = serde_json::from_str(&json);
        let list = list.ok().filter(|list| {
            // What another list does not contain would count as deleted.
            is_list_of(self.gvk(), &list.api_version, &list.kind)
        });
        let list = list.ok_or_else(|| self.failed(BadAnswer::NoList))?;
        Ok(list.items.unwrap_or_default())
    }

    /// Reads a path; `None` if the object does not exist.
    async fn read_again(&self, path: &str) -> Result<Option<String>, RefreshError> {
        let request = Request::get(path).body(Vec::new());
        let request = request.map_err(|error| self.failed(error))?;
        let answer = self
            .client
            .reading_client()
            .request_text(request, self.options.list_limit_in_bytes());
        match time::timeout(ANSWER_TIMEOUT, answer).await {
            Ok(Ok(json)) => Ok(Some(json)),
            Ok(Err(error)) if is_missing(&error) => Ok(None),
            Ok(Err(error)) => Err(self.failed(error)),
            Err(_) => Err(self.failed(BadAnswer::Late(ANSWER_TIMEOUT))),
        }
    }

    fn failed(&self, source: impl Error + Send + Sync + 'static) -> RefreshError {
        RefreshError {
            gvk: self.gvk().clone(),
            source: Box::new(source),
        }
    }
}
