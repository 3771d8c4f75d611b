//! One of the two servers, and what it answers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures::StreamExt;
use http::{Request, Response};
use http_body_util::BodyExt;
use kube::client::Body as HttpBody;
use kube::{Client, Config};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::answer::{Answer, Content, Names};
use crate::fill::Fill;
use crate::step::{Cleanup, How, Sequence, Step};

/// How long any answer may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a watch must be silent before its events count as complete.
const QUIET: Duration = Duration::from_millis(900);

/// One of the two servers.
#[derive(Clone)]
pub struct Side {
    client: Client,
}

impl fmt::Debug for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Side").finish_non_exhaustive()
    }
}

/// A watch that stays open while other requests are made.
struct Open {
    place: usize,
    events: Arc<Mutex<Vec<u8>>>,
    last: Arc<Mutex<Instant>>,
}

impl Side {
    /// Makes the client of a server.
    ///
    /// # Errors
    ///
    /// The configuration is not complete.
    pub fn new(mut config: Config) -> Result<Self> {
        // A request that is repeated would be answered otherwise, and a watch may be silent for long.
        config.default_retry = false;
        config.read_timeout = None;
        let client = Client::try_from(config)?;
        Ok(Self { client })
    }

    /// Asks for a document.
    ///
    /// # Errors
    ///
    /// The server does not answer.
    pub async fn get(&self, path: &str) -> Result<Value> {
        let answer = self.ask("GET", path, None).await?;
        Ok(answer.json().cloned().unwrap_or_default())
    }

    /// Makes a simple request.
    ///
    /// # Errors
    ///
    /// The server does not answer.
    pub async fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Answer> {
        let request = Request::builder().method(method).uri(path);
        let request = request.header("content-type", "application/json");
        let bytes = body.map(|body| body.to_string().into_bytes());
        let request = request.body(HttpBody::from(bytes.unwrap_or_default()))?;
        let response = timeout(PATIENCE, self.client.send(request)).await;
        let response = response.context("no answer in time")??;
        read(response).await
    }

    /// Makes the requests of a sequence, and returns the answers in their order.
    pub async fn run(&self, sequence: &Sequence, names: &Names) -> Vec<Answer> {
        let mut fill = Fill::new(names);
        let mut answers: Vec<Answer> = Vec::new();
        let (mut open, mut readers) = (Vec::new(), JoinSet::new());
        for (place, step) in sequence.steps.iter().enumerate() {
            self.settle(step, &fill).await;
            let answer = match step.how {
                How::Live => match self.open(step, &fill).await {
                    Ok(response) if response.status().is_success() => {
                        open.push(follow(&mut readers, place, response));
                        // Filled in below, when the other steps are done.
                        Answer::default()
                    }
                    Ok(response) => read(response).await.unwrap_or_else(Answer::from),
                    Err(error) => Answer::from(error),
                },
                How::UntilGone => self.until_gone(step, &fill).await,
                How::Answer | How::Watch => self.answer(step, &fill).await,
            };
            self.collected(step, &answer, &fill).await;
            self.named(step, &answer, &fill).await;
            fill.learn(step.id, &answer);
            answers.push(answer);
        }
        for watch in open {
            let place = watch.place;
            answers[place] = quiet(watch).await;
        }
        answers
    }

    /// Removes what a sequence left; returns whether all is gone.
    pub async fn clean(&self, sequence: &Sequence, names: &Names) -> bool {
        let fill = Fill::new(names);
        let mut clean = true;
        for cleanup in &sequence.cleanup {
            let (path, is_collection) = match cleanup {
                Cleanup::Collection(path) => (fill.text(path), true),
                Cleanup::Object(path) => (fill.text(path), false),
            };
            clean &= self.remove(&path, is_collection).await.unwrap_or(false);
        }
        clean
    }

    /// Deletes an object or a collection without grace, with its finalizers; returns whether it is gone.
    pub(crate) async fn remove(&self, path: &str, is_collection: bool) -> Result<bool> {
        let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0});
        self.ask("DELETE", path, Some(&options)).await?;
        let left = self.get(path).await?;
        // The object is not found. A collection is always answered by a list.
        if left["kind"] == "Status" {
            return Ok(true);
        }
        let items = if is_collection {
            left["items"].as_array().cloned()
        } else {
            Some(vec![left])
        };
        let items = items.unwrap_or_default();
        for item in &items {
            let name = item["metadata"]["name"].as_str().unwrap_or_default();
            let one = if is_collection {
                format!("{path}/{name}")
            } else {
                path.to_owned()
            };
            let request =
                Request::patch(one).header("content-type", "application/merge-patch+json");
            // What is left waits for finalizers of the sequence.
            let patch = json!({"metadata": {"finalizers": null}})
                .to_string()
                .into_bytes();
            let response = self
                .client
                .send(request.body(HttpBody::from(patch))?)
                .await?;
            response.into_body().collect().await?;
        }
        if items.is_empty() {
            return Ok(true);
        }
        let left = self.get(path).await?;
        Ok(left["kind"] == "Status" || left["items"].as_array().is_some_and(Vec::is_empty))
    }

    /// Waits until reads of any state show what was written before.
    async fn settle(&self, step: &Step, fill: &Fill) {
        let is_any = |(name, value): &(String, String)| name == "resourceVersion" && value == "0";
        if !step.query.iter().any(is_any) {
            return;
        }
        // Version 0 is answered from the watch cache, which gets new objects a little later.
        let query = format!(
            "limit=1&resourceVersionMatch=NotOlderThan&resourceVersion={}",
            fill.newest()
        );
        let path = format!("{}?{query}", fill.text(&step.path));
        // It is only for the wait; whatever it answers, the step itself is judged.
        drop(self.get(&path).await);
    }

    /// Waits until the garbage collector has finished the work of a deletion.
    async fn collected(&self, step: &Step, answer: &Answer, fill: &Fill) {
        // A collection is answered with its items as they were before the deletion.
        let may_wait = |found: &Value| found["items"].is_array() || waits_for_collector(found);
        if step.method != "DELETE" || !answer.json().is_some_and(may_wait) {
            return;
        }
        let path = fill.text(&step.path);
        let end = Instant::now() + Duration::from_secs(15);
        while Instant::now() < end
            && self
                .get(&path)
                .await
                .is_ok_and(|left| waits_for_collector(&left))
        {
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until the controller of CRDs has decided about the names of a new one.
    async fn named(&self, step: &Step, answer: &Answer, fill: &Fill) {
        let is_one = |found: &Value| found["kind"] == "CustomResourceDefinition";
        let is_stored =
            answer.status == 201 && !step.query.iter().any(|(name, _)| name == "dryRun");
        let Some(found) = answer.json().filter(|found| is_stored && is_one(found)) else {
            return;
        };
        let name = found["metadata"]["name"].as_str().unwrap_or_default();
        let path = fill.text(&step.path);
        // An apply has the name in its path.
        let path = if path.ends_with(name) {
            path
        } else {
            format!("{path}/{name}")
        };
        let end = Instant::now() + Duration::from_secs(15);
        let waits = |found: &Value| {
            let conditions = found["status"]["conditions"].as_array();
            let has = |kind: &str, status: &str| {
                let mut conditions = conditions.into_iter().flatten();
                conditions.any(|each| each["type"] == kind && each["status"] == status)
            };
            is_one(found) && !has("NamesAccepted", "False") && !has("Established", "True")
        };
        while Instant::now() < end && self.get(&path).await.is_ok_and(|found| waits(&found)) {
            sleep(Duration::from_millis(20)).await;
        }
    }

    async fn open(&self, step: &Step, fill: &Fill) -> Result<Response<HttpBody>> {
        let request = fill.request(step)?;
        let response = timeout(PATIENCE, self.client.send(request)).await;
        Ok(response.context("no answer in time")??)
    }

    async fn answer(&self, step: &Step, fill: &Fill) -> Answer {
        let answer = async {
            let response = self.open(step, fill).await?;
            let is_watch = step.how == How::Watch && response.status().is_success();
            let answer = read(response).await?;
            Ok(if is_watch { events(answer) } else { answer })
        };
        let answer = timeout(PATIENCE, answer).await;
        answer
            .unwrap_or_else(|_| Err(anyhow::anyhow!("no end in time")))
            .unwrap_or_else(Answer::from)
    }

    async fn until_gone(&self, step: &Step, fill: &Fill) -> Answer {
        let end = Instant::now() + Duration::from_secs(5);
        loop {
            let answer = self.answer(step, fill).await;
            let items = answer.json().and_then(|list| list["items"].as_array());
            if answer.status == 404 || items.is_some_and(Vec::is_empty) || Instant::now() > end {
                return answer;
            }
            sleep(Duration::from_millis(100)).await;
        }
    }
}

/// Returns whether a deleted object waits for the garbage collector, or a namespace for being emptied.
fn waits_for_collector(found: &Value) -> bool {
    if let Some(items) = found["items"].as_array() {
        return items.iter().any(waits_for_collector);
    }
    let metadata = &found["metadata"];
    let finalizers = metadata["finalizers"].as_array();
    let is_its_own = |name: &Value| *name == "orphan" || *name == "foregroundDeletion";
    let is_filled = |finalizers: &Value| finalizers.as_array().is_some_and(|all| !all.is_empty());
    let waits = finalizers.is_some_and(|finalizers| finalizers.iter().any(is_its_own))
        || found["kind"] == "Namespace" && is_filled(&found["spec"]["finalizers"]);
    metadata["deletionTimestamp"].is_string() && waits
}

/// Creates a CRD, and waits until its kind is served.
pub(crate) async fn install(side: &Side, definition: &Value) -> Result<()> {
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let answer = side.ask("POST", path, Some(definition)).await?;
    // 409: an earlier run has left it on the genuine server.
    if answer.status != 201 && answer.status != 409 {
        bail!("a CRD is not created: {answer:?}");
    }
    let spec = &definition["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let served = format!(
        "/apis/{}/v1/{}",
        text(&spec["group"]),
        text(&spec["names"]["plural"])
    );
    let end = Instant::now() + Duration::from_secs(20);
    while side.ask("GET", &served, None).await?.status != 200 {
        if Instant::now() > end {
            bail!("{served} is not served");
        }
        sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

async fn read(response: Response<HttpBody>) -> Result<Answer> {
    let (head, body) = response.into_parts();
    let bytes = body.collect().await?.to_bytes();
    let header = |name: &str| {
        let values = head.headers.get_all(name).iter();
        let mut values: Vec<String> = values
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
            .collect();
        // Only which warnings there are is compared, not their order.
        values.sort();
        values
    };
    let text = String::from_utf8_lossy(&bytes);
    let content_type = header("content-type").join(", ").replace(' ', "");
    // In what way a YAML document is written does not matter.
    let document = if content_type.starts_with("application/yaml") {
        lariat_core::yaml::read(&text).ok()
    } else {
        serde_json::from_str(&text).ok()
    };
    let content = document.map_or_else(|| Content::Text(text.into_owned()), Content::Json);
    Ok(Answer {
        status: head.status.as_u16(),
        content_type,
        warnings: header("warning"),
        content,
    })
}

/// Takes the body for the lines of a watch.
fn events(answer: Answer) -> Answer {
    let text = match &answer.content {
        // A watch of one event has been read as a document.
        Content::Json(event) => event.to_string(),
        Content::Text(text) => text.clone(),
        Content::Events(_) => return answer,
    };
    let events = lines(text.as_bytes());
    Answer {
        content: Content::Events(events),
        ..answer
    }
}

fn lines(bytes: &[u8]) -> Vec<Value> {
    let lines = bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    let event = |line| {
        serde_json::from_slice(line).unwrap_or_else(|_| json!(String::from_utf8_lossy(line)))
    };
    lines.map(event).collect()
}

fn follow(readers: &mut JoinSet<()>, place: usize, response: Response<HttpBody>) -> Open {
    let events: Arc<Mutex<Vec<u8>>> = Arc::default();
    let last = Arc::new(Mutex::new(Instant::now()));
    let (to, at) = (Arc::clone(&events), Arc::clone(&last));
    let mut stream = response.into_body().into_data_stream();
    readers.spawn(async move {
        // The lines are parsed at the end: bytes come in pieces of any size.
        while let Some(Ok(bytes)) = stream.next().await {
            to.lock().extend_from_slice(&bytes);
            *at.lock() = Instant::now();
        }
    });
    Open {
        place,
        events,
        last,
    }
}

/// Waits until a watch is silent.
async fn quiet(watch: Open) -> Answer {
    let begun = Instant::now();
    loop {
        // Counted from the end of the other steps, whose last events may still come.
        let silent_since = (*watch.last.lock()).max(begun);
        if silent_since.elapsed() >= QUIET || begun.elapsed() > 5 * QUIET {
            break;
        }
        sleep(QUIET / 6).await;
    }
    Answer {
        status: 200,
        content: Content::Events(lines(&watch.events.lock())),
        ..Answer::default()
    }
}
