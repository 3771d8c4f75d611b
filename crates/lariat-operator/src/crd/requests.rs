//! What is asked of the API server about a definition.

use std::time::Duration;

use kube::Client;
use kube::api::{GetParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::Request;
use kube::core::request::Error as RequestError;
use lariat_core::describe;
use serde_json::Value;
use tokio::time;

use super::error::DefinitionError;
use super::json::{list, text};

/// How long one answer may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);

const PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// What a request that did not succeed leads to.
pub(super) enum Failure {
    /// It may succeed later.
    Again(String),
    /// It is of no use to try again.
    Final(DefinitionError),
}

/// Requests about one definition.
pub(super) struct Requests<'a> {
    pub(super) client: &'a Client,
    pub(super) name: &'a str,
    pub(super) manager: &'a str,
}

impl Requests<'_> {
    pub(super) async fn get(&self) -> Result<Option<Value>, Failure> {
        let answer = self.send(Request::new(PATH).get(self.name, &GetParams::default()));
        match answer.await {
            Some(Err(error)) if code(&error) == Some(404) => Ok(None),
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

    /// Returns why a resource is not served yet, if it is not: discovery has to know it, and a list has to answer.
    pub(super) async fn unserved(&self, definition: &Value, version: &str) -> Option<String> {
        let group = text(definition, "/spec/group");
        let plural = text(definition, "/spec/names/plural");
        let path = format!("/apis/{group}/{version}");
        let missing = || Some(format!("{plural} are not served yet under {path}"));
        let problem = |verb, error| Some(format!("cannot {verb} {plural}: {}", describe(error)));
        let request = http::Request::get(&path).body(Vec::new());
        match self.send(request.map_err(RequestError::BuildRequest)).await {
            Some(Ok(answer)) => {
                let mut resources = list(&answer, "/resources").iter();
                if !resources.any(|each| text(each, "/name") == plural) {
                    return missing();
                }
            }
            Some(Err(error)) if code(&error) == Some(404) => return missing(),
            // Somebody may have taken the role for discovery away; a list says as much.
            Some(Err(error)) if code(&error) == Some(403) => {}
            Some(Err(error)) => return problem("discover", &error),
            None => return Some(unanswered("discover")),
        }
        let params = ListParams::default().limit(1);
        let request = Request::new(format!("{path}/{plural}")).list(&params);
        match self.send(request).await {
            Some(Ok(_)) => None,
            // Those who may list in some namespaces only have discovery to go by.
            Some(Err(error)) if code(&error) == Some(403) => None,
            Some(Err(error)) if code(&error) == Some(404) => missing(),
            // Discovery knows it. Objects may have to be converted by a webhook that this very program serves.
            Some(Err(error)) if code(&error) == Some(500) => None,
            Some(Err(error)) => problem("list", &error),
            None => Some(unanswered("list")),
        }
    }

    /// Sends a request; `None` if there is no answer.
    async fn send(
        &self,
        request: Result<http::Request<Vec<u8>>, RequestError>,
    ) -> Option<Result<Value, kube::Error>> {
        let request = match request {
            Ok(request) => request,
            Err(error) => return Some(Err(kube::Error::BuildRequest(error))),
        };
        let answer = time::timeout(ANSWER_TIMEOUT, self.client.request::<Value>(request));
        answer.await.ok()
    }

    fn judge(
        &self,
        verb: &'static str,
        answer: Option<Result<Value, kube::Error>>,
    ) -> Result<Value, Failure> {
        let error = match answer {
            None => return Err(Failure::Again(unanswered(verb))),
            Some(Ok(object)) => return Ok(object),
            Some(Err(error)) => error,
        };
        let name = self.name.to_owned();
        let is_final = match &error {
            // Somebody has just deleted it: the next look creates it.
            kube::Error::Api(status) if verb == "patch" && status.code == 404 => false,
            kube::Error::Api(status) => !matches!(status.code, 408 | 409 | 429 | 500..),
            kube::Error::BuildRequest(_) => true,
            // The connection, or an answer that was cut off.
            _ => false,
        };
        if !is_final {
            return Err(Failure::Again(format!(
                "cannot {verb} it: {}",
                describe(&error)
            )));
        }
        let is_forbidden = code(&error) == Some(403);
        let source = Box::new(error);
        Err(Failure::Final(match is_forbidden {
            true => DefinitionError::Forbidden { name, verb, source },
            false => DefinitionError::Refused { name, verb, source },
        }))
    }
}

fn code(error: &kube::Error) -> Option<u16> {
    match error {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    }
}

fn unanswered(verb: &str) -> String {
    format!("cannot {verb} it: no answer from the API server within {ANSWER_TIMEOUT:?}")
}
