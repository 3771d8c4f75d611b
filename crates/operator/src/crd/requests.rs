//! The requests about one CRD, and the interpretation of their errors.

use std::time::Duration;

use http::header::ACCEPT;
use kube::Client;
use kube::api::{GetParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::Request;
use kube::core::request::Error as RequestError;
use lariat_core::describe;
use serde_json::Value;

use super::error::CrdError;
use super::json::{list, text};
use super::report::some;
use super::schema::{Fields, published_fields};
use crate::wire::{Built, SendError, Sender, code_of};

/// The time limit of one request.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);

/// The API path of CRDs.
const PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The failure of a request.
pub(super) enum Failure {
    /// The error is transient: try again. The text is for the log.
    Again(String),
    /// The error is final.
    Final(CrdError),
}

/// Sends the requests about one CRD.
pub(super) struct Requests<'a> {
    sender: Sender,
    pub(super) name: &'a str,
    manager: &'a str,
}

impl<'a> Requests<'a> {
    pub(super) fn new(client: &Client, name: &'a str, manager: &'a str) -> Self {
        Self {
            sender: Sender::new(client.clone()).within(ANSWER_TIMEOUT),
            name,
            manager,
        }
    }

    pub(super) async fn get(&self) -> Result<Option<Value>, Failure> {
        let answer = self.send(Request::new(PATH).get(self.name, &GetParams::default()));
        match answer.await {
            Err(error) if code(&error) == Some(404) => Ok(None),
            answer => self.judge("get", answer).map(Some),
        }
    }

    pub(super) async fn create(&self, definition: &Value) -> Result<Value, Failure> {
        let params = PostParams {
            field_manager: Some(self.manager.to_owned()),
            ..PostParams::default()
        };
        let request = Request::new(PATH).create(&params, definition.to_string().into_bytes());
        self.judge("create", self.send(request).await)
    }

    pub(super) async fn patch(&self, patch: &Value) -> Result<Value, Failure> {
        let params = PatchParams {
            field_manager: Some(self.manager.to_owned()),
            ..PatchParams::default()
        };
        let request = Request::new(PATH).patch(self.name, &params, &Patch::Merge(patch));
        self.judge("patch", self.send(request).await)
    }

    /// Returns why a version is not served yet, or `None` if it is served.
    ///
    /// It must be in discovery, and a list must succeed. Discovery is not enough, because the API server publishes the
    /// group before it can handle requests.
    pub(super) async fn unserved(&self, definition: &Value, version: &str) -> Option<String> {
        let group = text(definition, "/spec/group");
        let plural = text(definition, "/spec/names/plural");
        let path = format!("/apis/{group}/{version}");
        let missing = || Some(format!("{plural} are not served yet under {path}"));
        let problem = |verb, error| Some(format!("cannot {verb} {plural}: {}", describe(error)));
        let request = http::Request::get(&path).body(Vec::new());
        match self.send(request.map_err(RequestError::BuildRequest)).await {
            Ok(answer) => {
                let mut resources = list(&answer, "/resources").iter();
                if !resources.any(|each| text(each, "/name") == plural) {
                    return missing();
                }
            }
            Err(error) if code(&error) == Some(404) => return missing(),
            // Discovery may be forbidden. The list decides then.
            Err(error) if code(&error) == Some(403) => {}
            Err(SendError::Kube(error)) => return problem("discover", &error),
            Err(silence) => return Some(format!("cannot discover it: {silence}")),
        }
        let params = ListParams::default().limit(1);
        let request = Request::new(format!("{path}/{plural}")).list(&params);
        match self.send(request).await {
            Ok(_) => None,
            // Lists of all namespaces may be forbidden. Discovery has decided then.
            Err(error) if code(&error) == Some(403) => None,
            Err(error) if code(&error) == Some(404) => missing(),
            // The objects may need a conversion webhook, which this program serves itself after its start. Waiting for
            // it here would be a deadlock.
            Err(error) if code(&error) == Some(500) => None,
            Err(SendError::Kube(error)) => problem("list", &error),
            Err(silence) => Some(format!("cannot list it: {silence}")),
        }
    }

    /// Returns which fields of a version are not published yet, or `None` if all are.
    ///
    /// Every user that is authenticated may read the document by default.
    pub(super) async fn unpublished(
        &self,
        definition: &Value,
        version: &str,
        fields: &Fields,
    ) -> Option<String> {
        let group = text(definition, "/spec/group");
        let path = format!("/openapi/v3/apis/{group}/{version}");
        let request = http::Request::get(&path).header(ACCEPT, "application/json");
        let request = request.body(Vec::new()).map_err(RequestError::BuildRequest);
        let found = match self.send(request).await {
            Ok(document) => published_fields(&document, definition, version),
            Err(error) if code(&error) == Some(403) => {
                self.warn_of_no_schema(&path, "the program may not read it");
                return None;
            }
            Err(error) if code(&error) == Some(404) && !self.publishes_schemas().await => {
                self.warn_of_no_schema(&path, "the API server publishes no schemas");
                return None;
            }
            Err(error) => return Some(format!("cannot read {path}: {}", describe(&error))),
        };
        let missing: Vec<String> = fields.difference(&found).cloned().collect();
        (!missing.is_empty()).then(|| format!("{path} does not have {} yet", some(&missing)))
    }

    /// Returns whether the API server has documents of schemas at all.
    async fn publishes_schemas(&self) -> bool {
        let request = http::Request::get("/openapi/v3").header(ACCEPT, "application/json");
        let request = request.body(Vec::new()).map_err(RequestError::BuildRequest);
        let answer = self.send(request).await;
        answer.map_or_else(|error| code(&error) != Some(404), |_| true)
    }

    fn warn_of_no_schema(&self, path: &str, reason: &str) {
        let crd = self.name;
        tracing::warn!(
            crd,
            path,
            reason,
            "the schema in use cannot be read: new fields are not waited for"
        );
    }

    async fn send(&self, request: Built) -> Result<Value, SendError> {
        self.sender.json(request).await
    }

    /// Decides whether the error of a request is transient or final.
    fn judge(
        &self,
        verb: &'static str,
        answer: Result<Value, SendError>,
    ) -> Result<Value, Failure> {
        let error = match answer {
            Ok(object) => return Ok(object),
            Err(SendError::Kube(error)) => error,
            Err(silence) => return Err(Failure::Again(format!("cannot {verb} it: {silence}"))),
        };
        let name = self.name.to_owned();
        let is_final = match &error {
            // The CRD was deleted between the read and the patch. The next check creates it.
            kube::Error::Api(status) if verb == "patch" && status.code == 404 => false,
            kube::Error::Api(status) => !matches!(status.code, 408 | 409 | 429 | 500..),
            kube::Error::BuildRequest(_) => true,
            // A broken connection, or a truncated answer.
            _ => false,
        };
        if !is_final {
            return Err(Failure::Again(format!(
                "cannot {verb} it: {}",
                describe(&error)
            )));
        }
        let is_forbidden = code_of(&error) == Some(403);
        let source = Box::new(error);
        Err(Failure::Final(if is_forbidden {
            CrdError::Forbidden { name, verb, source }
        } else {
            CrdError::Refused { name, verb, source }
        }))
    }
}

fn code(error: &SendError) -> Option<u16> {
    match error {
        SendError::Kube(error) => code_of(error),
        SendError::NoAnswer(_) => None,
    }
}
