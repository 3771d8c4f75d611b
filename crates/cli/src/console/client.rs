//! Asking a console.

use std::time::Duration;

use anyhow::{Context, Result};
use form_urlencoded::Serializer;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use kube::client::Body;
use kube::{Client, Config};
use lariat_client::Http2;
use lariat_console::api::{KindRef, Overview, key_segment};
use lariat_core::{ObjectKey, describe};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::timeout;

use super::error::{AskError, Place, clean};
use super::options::{Pod, Source};
use super::stream::Events;

/// How many bytes an answer may have.
const LIMIT: usize = 64 * 1024 * 1024;

/// The console's token, where the API server takes `Authorization` for itself.
const TOKEN_HEADER: &str = "x-lariat-token";

/// The overview.
const OVERVIEW: &str = "/api/v1/overview";

/// The names of kinds in discovery.
pub(crate) const NAMES: &str = "/api/v1/names";

/// A console, and how to ask it.
pub(crate) struct Console {
    client: Client,
    /// What stands before its paths.
    prefix: String,
    token: Option<HeaderValue>,
    place: Place,
    timeout: Duration,
}

/// An answer.
#[derive(Debug, Clone)]
pub(crate) struct Answer<T> {
    /// The parsed answer; its texts contain no terminal control characters.
    pub(crate) value: T,
    /// The answer itself, with what a later version may have added.
    pub(crate) json: Value,
}

/// The overviews that a console sends by itself.
pub(crate) struct Updates {
    body: Body,
    events: Events,
    /// Those that have been read and not returned, newest first.
    ready: Vec<String>,
    place: Place,
    timeout: Duration,
}

impl Console {
    /// Prepares to ask a console; nothing is sent to it yet.
    ///
    /// # Errors
    ///
    /// The token or the kubeconfig cannot be used.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub(crate) async fn connect(source: &Source) -> Result<Self> {
        let token = source
            .token
            .as_ref()
            .map(|token| token.read())
            .transpose()?;
        let (client, prefix, name) = if let Some(pod) = &source.pod {
            let client = match &source.kubeconfig {
                Some(path) => lariat_client::from_kubeconfig(path).await,
                None => lariat_client::connect().await,
            };
            let Pod {
                namespace,
                name,
                port,
            } = pod;
            // The `proxy` subresource of the pod: the API server forwards the request, and checks `pods/proxy`.
            let prefix = format!("/api/v1/namespaces/{namespace}/pods/{name}:{port}/proxy");
            let shown = format!("port {port} of pod {namespace}/{name}");
            (client?, prefix, shown)
        } else {
            let config = Config::new(source.url.clone());
            let client = lariat_client::from_config(config, Http2::Negotiated).await?;
            let shown = source.url.to_string().trim_end_matches('/').to_owned();
            (client, String::new(), shown)
        };
        let place = Place {
            name,
            is_pod: source.pod.is_some(),
            has_token: token.is_some(),
        };
        Ok(Self {
            client,
            prefix,
            token: token
                .map(|token| credentials(&token, place.is_pod))
                .transpose()?,
            place,
            timeout: source.timeout,
        })
    }

    /// Returns how the console is named.
    pub(crate) fn place(&self) -> &str {
        &self.place.name
    }

    /// Asks for the state of everything.
    ///
    /// # Errors
    ///
    /// There is no answer, or it is a refusal, or something else.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses the answer.
    pub(crate) async fn overview(&self) -> Result<Answer<Overview>, AskError> {
        self.get(OVERVIEW).await
    }

    /// Asks a question and waits for the whole answer.
    ///
    /// # Errors
    ///
    /// As of [`overview`](Self::overview).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses the answer.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<Answer<T>, AskError> {
        // The time limit covers the body too, which could otherwise stop in the middle for ever.
        let answered = timeout(self.timeout, async {
            let response = self.send(path, "application/json").await?;
            let text = text(response.into_body(), &self.place).await?;
            understood(&text, path, &self.place)
        });
        answered.await.unwrap_or_else(|_| Err(self.silent()))
    }

    /// Asks for overviews as they come.
    ///
    /// # Errors
    ///
    /// As of [`overview`](Self::overview).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub(crate) async fn watch(&self) -> Result<Updates, AskError> {
        let path = format!("{OVERVIEW}?watch=true");
        // Only the beginning is limited here; `Updates::next` limits the silence between two overviews.
        let asked = timeout(self.timeout, self.send(&path, "text/event-stream"));
        let response = asked.await.unwrap_or_else(|_| Err(self.silent()))?;
        Ok(Updates {
            body: response.into_body(),
            events: Events::default(),
            ready: Vec::new(),
            place: self.place.clone(),
            timeout: self.timeout,
        })
    }

    /// Sends a request, and returns its answer unless that is a refusal.
    async fn send(&self, path: &str, accepted: &str) -> Result<Response<Body>, AskError> {
        let whole = format!("{}{path}", self.prefix);
        let mut request = Request::get(whole).header(header::ACCEPT, accepted);
        if let Some(token) = &self.token {
            let name = if self.place.is_pod {
                TOKEN_HEADER
            } else {
                "authorization"
            };
            request = request.header(name, token);
        }
        let request = request.body(Body::empty());
        let unreached =
            |error: &(dyn std::error::Error + 'static)| AskError::unreached(&self.place, error);
        let request = request.map_err(|error| unreached(&error))?;
        let sent = self.client.send(request).await;
        let response = sent.map_err(|error| unreached(&error))?;
        let code = response.status();
        if code == StatusCode::OK {
            return Ok(response);
        }
        // A refusal says more in its body, if that can be read.
        let said = text(response.into_body(), &self.place).await;
        let said = said.unwrap_or_default();
        Err(AskError::status(&self.place, path, code, &said))
    }

    fn silent(&self) -> AskError {
        silent(&self.place, self.timeout)
    }
}

impl Updates {
    /// Waits for the next overview.
    ///
    /// # Errors
    ///
    /// The stream has ended or is silent, or has something else in it. It is of no more use then.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Result<Answer<Overview>, AskError> {
        loop {
            if let Some(text) = self.ready.pop() {
                return understood(&text, OVERVIEW, &self.place);
            }
            let read = timeout(self.timeout, self.body.frame()).await;
            let frame = read.map_err(|_| silent(&self.place, self.timeout))?;
            let broken = |detail: String| AskError::Broken {
                place: self.place.name.clone(),
                detail,
            };
            let frame = frame.ok_or_else(|| broken("the stream has ended".to_owned()))?;
            let frame = frame.map_err(|error| broken(describe(&error)))?;
            // Trailers have no events.
            let Ok(bytes) = frame.into_data() else {
                continue;
            };
            let events = self.events.push(&bytes);
            let events = events.ok_or_else(|| broken("an event is too long".to_owned()))?;
            let overviews = events.into_iter().filter(|event| event.name == "overview");
            self.ready.extend(overviews.map(|event| event.data));
            // `ready` was empty, so this puts the new ones in the order for `pop`.
            self.ready.reverse();
        }
    }
}

/// Returns the path of a controller.
pub(crate) fn controller_path(kind: &KindRef) -> String {
    let path = format!("/api/v1/controllers/{}", escaped(&kind.segment()));
    in_context(path, kind)
}

/// Returns the path of a key.
pub(crate) fn key_path(kind: &KindRef, key: &ObjectKey) -> String {
    let (kind_segment, key) = (escaped(&kind.segment()), escaped(&key_segment(key)));
    let path = format!("/api/v1/controllers/{kind_segment}/keys/{key}");
    in_context(path, kind)
}

fn in_context(path: String, kind: &KindRef) -> String {
    if kind.context.is_empty() {
        return path;
    }
    let mut query = Serializer::new(String::new());
    query.append_pair("context", &kind.context);
    format!("{path}?{}", query.finish())
}

/// Escapes what ends a segment of a path; names of Kubernetes have nothing of it.
fn escaped(segment: &str) -> String {
    let mut path = String::new();
    for byte in segment.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte) {
            path.push(char::from(byte));
        } else {
            path.push_str(&format!("%{byte:02X}"));
        }
    }
    path
}

fn credentials(token: &str, is_pod: bool) -> Result<HeaderValue> {
    let text = if is_pod {
        token.to_owned()
    } else {
        format!("Bearer {token}")
    };
    let mut value = HeaderValue::from_str(&text)
        .ok()
        .context("the token fits no header")?;
    // Keeps it out of the `Debug` output of requests.
    value.set_sensitive(true);
    Ok(value)
}

fn silent(place: &Place, after: Duration) -> AskError {
    AskError::Slow {
        place: place.name.clone(),
        after,
    }
}

async fn text(body: Body, place: &Place) -> Result<String, AskError> {
    let read = Limited::new(body, LIMIT).collect().await;
    let read = read.map_err(|error| AskError::Broken {
        place: place.name.clone(),
        detail: describe(&*error),
    })?;
    Ok(String::from_utf8_lossy(&read.to_bytes()).into_owned())
}

/// Reads an answer; an error names the field.
fn understood<T: DeserializeOwned>(
    text: &str,
    path: &str,
    place: &Place,
) -> Result<Answer<T>, AskError> {
    let other = |detail: String| AskError::Other {
        place: place.name.clone(),
        path: path.to_owned(),
        detail,
    };
    // First without a type, because `--output json` passes on fields that this version does not know.
    let json: Value = serde_json::from_str(text).map_err(|error| {
        let position = format!("line {} column {}", error.line(), error.column());
        other(format!("it is no JSON, at {position}"))
    })?;
    let value = serde_path_to_error::deserialize(cleaned(json.clone())).map_err(|error| {
        let (field, detail) = (error.path().to_string(), error.inner());
        let place = if field == "." { String::new() } else { format!("in {field}: ") };
        let version = env!("CARGO_PKG_VERSION");
        other(format!(
            "{place}{detail}; the program may be of another version than this command line, {version}"
        ))
    })?;
    Ok(Answer { value, json })
}

/// Cleans all texts.
fn cleaned(json: Value) -> Value {
    match json {
        Value::String(text) => Value::String(clean(&text)),
        Value::Array(all) => all.into_iter().map(cleaned).collect(),
        Value::Object(fields) => {
            let fields = fields.into_iter();
            Value::Object(fields.map(|(name, value)| (name, cleaned(value))).collect())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use lariat_core::Gvk;

    use super::*;

    fn place() -> Place {
        Place {
            name: "http://a:1".to_owned(),
            is_pod: false,
            has_token: false,
        }
    }

    #[test]
    fn paths_are_those_of_the_api() {
        let pods = KindRef::new("", &Gvk::new("", "v1", "Pod"));
        assert_eq!(controller_path(&pods), "/api/v1/controllers/core~v1~Pod");
        let there = KindRef::new("c 1", &Gvk::new("apps", "v1", "Deployment"));
        let key = ObjectKey::namespaced("shop", "web");
        assert_eq!(
            key_path(&there, &key),
            "/api/v1/controllers/apps~v1~Deployment/keys/shop~web?context=c+1"
        );
        let odd = ObjectKey::cluster("a:b?#%");
        let path = "/api/v1/controllers/core~v1~Pod/keys/~a:b%3F%23%25";
        assert_eq!(key_path(&pods, &odd), path);
    }

    #[test]
    fn an_answer_of_another_version_names_the_field() {
        let read = |text: &str| {
            let answer = understood::<Vec<lariat_console::api::Done>>(text, "/x", &place());
            answer.unwrap_err().to_string()
        };
        let missing = read(r#"[{"message": "a"}, {"massage": "b"}]"#);
        let expected = "http://a:1 answers /x with something else than a console of Lariat does: in [1]: missing \
            field `message`; the program may be of another version";
        assert!(missing.starts_with(expected), "{missing}");
        let garbage = read("<html>");
        assert!(
            garbage.ends_with("it is no JSON, at line 1 column 1"),
            "{garbage}"
        );
    }

    #[test]
    fn texts_have_nothing_that_steers_a_terminal() {
        let json = r#"{"message": "a\u001b[31mb\u202ec\nd", "new": 1}"#;
        let answer: Answer<lariat_console::api::Done> = understood(json, "/x", &place()).unwrap();
        assert_eq!(answer.value.message, "a [31mb c d");
        // What a later version adds is passed on.
        assert_eq!(answer.json["new"], 1);
    }
}
