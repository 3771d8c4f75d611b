//! A server that does what the test says.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};
use http::Response;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use lariat_cache::{
    Informer, KindStatus, SharedCacheFactory, Source, SourceBody, SourceError, SourceRequest,
    Subscription,
};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::{self, Instant};

use crate::bench::{Recorder, config_maps, listing, no_client};

/// A request, as the script sees it.
pub(crate) struct Ask {
    pub(crate) watch: bool,
    pub(crate) query: String,
    pub(crate) metadata_only: bool,
    /// Counts requests of the same verb, from 0; requests for the version are counted apart.
    pub(crate) number: usize,
}

/// What the script answers.
pub(crate) enum Answer {
    /// A status code, headers and a whole body.
    Whole(u16, Vec<(&'static str, &'static str)>, String),
    /// Pieces of a body at intervals; then nothing more.
    Slow(Vec<String>, Duration),
    /// Pieces of a body, and how it ends.
    Pieces(Vec<String>, BodyEnd),
    /// A body of the test's own.
    Body(SourceBody),
    /// The connection is refused.
    Nothing,
    /// The request is taken, and nothing comes back.
    Never,
}

#[derive(Clone, Copy)]
pub(crate) enum BodyEnd {
    Clean,
    Cut,
    /// Nothing more comes, and no end either.
    Silence,
}

type Play = dyn Fn(&Ask) -> Answer + Send + Sync;

/// A scripted server that remembers what it was asked.
#[derive(Clone)]
pub(crate) struct Script {
    play: Arc<Play>,
    /// What it answers to requests for its version: lists of one object after a failure.
    checks: Arc<Play>,
    asked: Arc<Mutex<Vec<Asked>>>,
    /// The lines that it has sent, by the versions of their objects.
    sent: Arc<Mutex<BTreeMap<u64, String>>>,
    /// Whether a watch begins with what was sent from its version on, as in one history.
    repeats: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verb {
    List,
    Watch,
    Check,
}

struct Asked {
    at: Instant,
    verb: Verb,
    query: String,
}

impl Script {
    pub(crate) fn new(play: impl Fn(&Ask) -> Answer + Send + Sync + 'static) -> Self {
        Self {
            play: Arc::new(play),
            // As of a server that has gone on.
            checks: Arc::new(|_| list(1_000_000, "", &[])),
            asked: Arc::default(),
            sent: Arc::default(),
            repeats: true,
        }
    }

    /// Lets watches begin with what the script says, as those of another history.
    pub(crate) fn forgetting(self) -> Self {
        Self {
            repeats: false,
            ..self
        }
    }

    /// Returns what a watch reports first: the lines that were sent, if the next one after its version was.
    fn repeated(&self, query: &str) -> Vec<String> {
        let mut parameters = query.split('&');
        let since = parameters.find_map(|each| each.strip_prefix("resourceVersion="));
        let since = since.and_then(|since| since.parse().ok()).unwrap_or(0);
        let sent = self.sent.lock();
        if !self.repeats || !sent.contains_key(&(since + 1)) {
            return Vec::new();
        }
        sent.range(since + 1..)
            .map(|(_, line)| line.clone())
            .collect()
    }

    fn sends(&self, pieces: &[String]) {
        for line in pieces.concat().lines() {
            let event: Value = serde_json::from_str(line).unwrap_or_default();
            let version = event["object"]["metadata"]["resourceVersion"].as_str();
            let version = version.and_then(|version| version.parse().ok());
            if let Some(version) = version.filter(|_| event["type"] != "BOOKMARK") {
                self.sent.lock().insert(version, format!("{line}\n"));
            }
        }
    }

    /// Remembers the objects of a list as events that led to them.
    fn lists_objects(&self, text: &str) {
        let list: Value = serde_json::from_str(text).unwrap_or_default();
        for object in list["items"].as_array().into_iter().flatten() {
            self.sends(&[format!(r#"{{"type":"ADDED","object":{object}}}"#)]);
        }
    }

    /// Answers requests for its version, too.
    pub(crate) fn checked(self, checks: impl Fn(&Ask) -> Answer + Send + Sync + 'static) -> Self {
        let checks = Arc::new(checks);
        Self { checks, ..self }
    }

    pub(crate) fn lists(&self) -> usize {
        self.count(Verb::List)
    }

    pub(crate) fn watches(&self) -> usize {
        self.count(Verb::Watch)
    }

    fn count(&self, verb: Verb) -> usize {
        let asked = self.asked.lock();
        asked.iter().filter(|asked| asked.verb == verb).count()
    }

    /// Returns the queries of one verb.
    pub(crate) fn queries(&self, watch: bool) -> Vec<String> {
        self.queries_of(verb(watch))
    }

    /// Returns the requests for its version.
    pub(crate) fn checks(&self) -> Vec<String> {
        self.queries_of(Verb::Check)
    }

    fn queries_of(&self, verb: Verb) -> Vec<String> {
        let asked = self.asked.lock();
        let asked = asked.iter().filter(|asked| asked.verb == verb);
        asked.map(|asked| asked.query.clone()).collect()
    }

    /// Returns when requests of one verb came.
    pub(crate) fn times(&self, watch: bool) -> Vec<Instant> {
        let asked = self.asked.lock();
        let asked = asked.iter().filter(|asked| asked.verb == verb(watch));
        asked.map(|asked| asked.at).collect()
    }

    /// Returns the seconds between successive requests of one verb.
    pub(crate) fn gaps(&self, watch: bool) -> Vec<f64> {
        self.times(watch)
            .windows(2)
            .map(|pair| (pair[1] - pair[0]).as_secs_f64())
            .collect()
    }
}

impl Script {
    /// Lets a watch begin with what was sent before.
    fn faithful(&self, ask: &Ask, answer: Answer) -> Answer {
        let repeated = self.repeated(&ask.query);
        match answer {
            Answer::Slow(pieces, interval) if ask.watch => {
                self.sends(&pieces);
                Answer::Body(slow_body(repeated, pieces, interval))
            }
            Answer::Pieces(pieces, end) if ask.watch => {
                self.sends(&pieces);
                Answer::Pieces([repeated, pieces].concat(), end)
            }
            Answer::Whole(200, headers, text) if !ask.watch => {
                self.lists_objects(&text);
                Answer::Whole(200, headers, text)
            }
            answer => answer,
        }
    }
}

fn verb(watch: bool) -> Verb {
    if watch { Verb::Watch } else { Verb::List }
}

impl Source for Script {
    fn get<'a>(
        &'a self,
        request: &'a SourceRequest,
    ) -> BoxFuture<'a, Result<Response<SourceBody>, SourceError>> {
        let (watch, query) = (request.watch, request.query.as_str());
        let is_check = query == "limit=1" || query.starts_with("limit=1&");
        let verb = if is_check { Verb::Check } else { verb(watch) };
        let number = self.count(verb);
        let ask = Ask {
            watch,
            query: query.to_owned(),
            metadata_only: request.metadata_only,
            number,
        };
        self.asked.lock().push(Asked {
            at: Instant::now(),
            verb,
            query: query.to_owned(),
        });
        let play = if is_check { &self.checks } else { &self.play };
        let answer = match self.faithful(&ask, play(&ask)) {
            Answer::Nothing => Err("connection refused".into()),
            Answer::Never => return Box::pin(std::future::pending()),
            Answer::Whole(code, headers, text) => {
                let mut response = Response::builder().status(code);
                for (name, value) in headers {
                    response = response.header(name, value);
                }
                response
                    .body(body(vec![text], BodyEnd::Clean))
                    .map_err(SourceError::from)
            }
            Answer::Slow(pieces, interval) => {
                Ok(Response::new(slow_body(Vec::new(), pieces, interval)))
            }
            Answer::Body(body) => Ok(Response::new(body)),
            Answer::Pieces(pieces, end) => Ok(Response::new(body(pieces, end))),
        };
        Box::pin(async move { answer })
    }
}

fn body(pieces: Vec<String>, end: BodyEnd) -> SourceBody {
    let pieces = stream::iter(pieces).map(|piece| Ok(Frame::data(Bytes::from(piece))));
    let end = match end {
        BodyEnd::Clean => stream::empty().boxed(),
        BodyEnd::Cut => stream::iter([Err("connection reset".into())]).boxed(),
        BodyEnd::Silence => stream::pending().boxed(),
    };
    StreamBody::new(pieces.chain(end)).boxed_unsync()
}

fn slow_body(first: Vec<String>, pieces: Vec<String>, interval: Duration) -> SourceBody {
    let frame = |piece| Ok(Frame::data(Bytes::from(piece)));
    let pieces = stream::iter(pieces).then(move |piece| async move {
        time::sleep(interval).await;
        frame(piece)
    });
    let pieces = stream::iter(first).map(frame).chain(pieces);
    StreamBody::new(pieces.chain(stream::pending())).boxed_unsync()
}

/// An informer that reads from a script.
pub(crate) struct Scripted {
    pub(crate) script: Script,
    pub(crate) informer: Informer,
    pub(crate) recorder: Arc<Recorder>,
    // Dropping the factory would stop the informer.
    pub(crate) factory: SharedCacheFactory,
    _subscription: Subscription,
}

impl Scripted {
    pub(crate) fn start(play: impl Fn(&Ask) -> Answer + Send + Sync + 'static) -> Self {
        Self::of(Script::new(play))
    }

    pub(crate) fn of(script: Script) -> Self {
        let factory = listing(no_client());
        let informer = factory.for_source(config_maps(), Arc::new(script.clone()));
        let recorder = Arc::new(Recorder::default());
        let subscription = informer.subscribe(Arc::clone(&recorder) as _);
        factory.start();
        Self {
            script,
            informer,
            recorder,
            factory,
            _subscription: subscription,
        }
    }

    pub(crate) fn status(&self) -> KindStatus {
        self.informer.status()
    }
}

/// An object's JSON.
pub(crate) fn object(name: &str, version: u64) -> String {
    format!(r#"{{"metadata":{{"name":"{name}","uid":"{name}","resourceVersion":"{version}"}}}}"#)
}

/// A page of a list.
pub(crate) fn list(version: u64, token: &str, names: &[&str]) -> Answer {
    let items: Vec<String> = names.iter().map(|name| object(name, version)).collect();
    Answer::Whole(200, Vec::new(), list_text(version, token, &items))
}

/// The JSON of a page.
pub(crate) fn list_text(version: u64, token: &str, items: &[String]) -> String {
    let metadata = format!(r#"{{"resourceVersion":"{version}","continue":"{token}"}}"#);
    format!(r#"{{"metadata":{metadata},"items":[{}]}}"#, items.join(","))
}

/// A line of a watch.
pub(crate) fn event(kind: &str, name: &str, version: u64) -> String {
    format!(
        "{{\"type\":\"{kind}\",\"object\":{}}}\n",
        object(name, version)
    )
}

/// An error as the API server words it.
pub(crate) fn status(code: u16, reason: &str) -> Answer {
    let text = format!(
        r#"{{"kind":"Status","status":"Failure","message":"no","reason":"{reason}","code":{code}}}"#
    );
    Answer::Whole(code, Vec::new(), text)
}

/// A watch on which nothing happens.
pub(crate) fn quiet() -> Answer {
    Answer::Pieces(Vec::new(), BodyEnd::Silence)
}
