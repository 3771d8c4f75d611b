//! The floor: the bytes of the pods, read through the client of Lariat's caches and thrown away.
//!
//! Nothing that reads pods over this client costs less. `floor` cuts the watch into lines, `floor-scan` passes over the
//! JSON of each line once besides, and `floor-lists` asks for pages, whose items it counts in one pass of JSON, before
//! it watches. It counts lines, and reads nothing of them but when the state was written, where that is asked for.

use std::io::Read;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail, ensure};
use flate2::read::MultiGzDecoder;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING};
use http::{Request, Response};
use http_body_util::BodyExt;
use kube::client::Body;
use lariat_client::{Http2, from_config};
use memchr::memchr;
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::task::JoinSet;

use super::Tally;
use super::job::{Job, Live, Reader};
use crate::meter;
use crate::pods::stamp::Stamper;

/// As many as a page of Lariat's lists has.
const PAGE: usize = 500;

/// What watches say of everything there is, and then of what happens.
// The timeout is longer than any run.
const STREAM: &str = "watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersion=\
    &resourceVersionMatch=NotOlderThan&timeoutSeconds=600";

/// A line of a watch that is about no pod.
const BOOKMARK: &[u8] = br#"{"type":"BOOKMARK""#;
const ERROR: &[u8] = br#"{"type":"ERROR""#;

/// Starts the floor of a case.
pub(super) async fn start(job: &Job<'_>) -> Result<Live> {
    ensure!(
        matches!(job.case, "metadata" | "typed"),
        "the floor is that of the cases metadata and typed"
    );
    let (mut http2, mut is_list, mut scans) = (Http2::default(), false, false);
    match job.subject {
        "floor" | "floor-one-thread" => {}
        "floor-scan" => scans = true,
        "floor-lists" => is_list = true,
        "floor-http1" => http2 = Http2::Off,
        "floor-http2" => http2 = Http2::PriorKnowledge,
        other => bail!("no subject {other:?}; --help lists them"),
    }
    let requests = Requests {
        client: from_config(job.target.config().await?, http2).await?,
        path: super::lariat::resource().collection_path(job.target.namespace.as_deref()),
        metadata: job.case == "metadata",
    };
    let floor = Floor {
        tally: Arc::clone(&job.tally),
        scans,
        stamper: job.is_stamped.then(Stamper::new),
    };
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        // A regular end is a failure too: the floor does not reconnect, so the run would wait in vain.
        let failed = floor.run(&requests, is_list).await;
        floor.tally.fail(&failed.err().unwrap_or_else(ended));
    });
    Ok(Live {
        bytes: None,
        reader: Box::new(|| Reader {
            get: Box::new(|| {}),
            list: Box::new(|| {}),
        }),
        _at_work: Box::new(tasks),
    })
}

fn ended() -> anyhow::Error {
    anyhow::anyhow!("the server has ended the watch")
}

/// How pods are asked for.
struct Requests {
    client: kube::Client,
    path: String,
    metadata: bool,
}

impl Requests {
    async fn get(&self, query: &str, kind: &str, encoding: &str) -> Result<Response<Body>> {
        let accept = if self.metadata {
            format!("application/json;as={kind};g=meta.k8s.io;v=v1,application/json")
        } else {
            "application/json".to_owned()
        };
        let request = Request::get(format!("{}?{query}", self.path))
            .header(ACCEPT, accept)
            .header(ACCEPT_ENCODING, encoding)
            .body(Body::empty())?;
        let response = self.client.send(request).await?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let answer = response.into_body().collect().await?.to_bytes();
        bail!(
            "{}?{query}: {status}: {}",
            self.path,
            String::from_utf8_lossy(&answer)
        )
    }

    async fn watch(&self, query: &str) -> Result<Body> {
        // Uncompressed, as Lariat's watches are.
        let answer = self.get(query, "PartialObjectMetadata", "identity").await?;
        Ok(answer.into_body())
    }

    /// Reads a page whole.
    async fn page(&self, token: &str) -> Result<Vec<u8>> {
        let query = format!("limit={PAGE}{token}");
        let answer = self
            // Compressed, as Lariat's lists are.
            .get(&query, "PartialObjectMetadataList", "gzip")
            .await?;
        let is_packed = answer.headers().contains_key(CONTENT_ENCODING);
        let body = answer.into_body().collect().await?.to_bytes();
        if !is_packed {
            return Ok(body.into());
        }
        let mut page = Vec::new();
        MultiGzDecoder::new(&*body).read_to_end(&mut page)?;
        Ok(page)
    }
}

/// What there is to read of a page.
#[derive(Deserialize)]
struct Page {
    metadata: PageMetadata,
    /// None where there are none, as some servers write it.
    items: Option<Vec<IgnoredAny>>,
}

#[derive(Deserialize)]
struct PageMetadata {
    #[serde(rename = "resourceVersion")]
    version: String,
    #[serde(default, rename = "continue")]
    token: String,
}

/// Who throws lines away.
struct Floor {
    tally: Arc<Tally>,
    /// Whether it passes over the JSON of each line.
    scans: bool,
    /// Finds out when the state in a line was written, where that is asked for.
    stamper: Option<Stamper>,
}

impl Floor {
    /// Reads everything there is and then what happens, until the server ends it.
    async fn run(&self, requests: &Requests, is_list: bool) -> Result<()> {
        let query = if is_list {
            let version = self.list(requests).await?;
            format!(
                "watch=true&allowWatchBookmarks=true&resourceVersion={version}&timeoutSeconds=600"
            )
        } else {
            STREAM.to_owned()
        };
        let mut body = requests.watch(&query).await?;
        let mut lines = Lines::default();
        while let Some(frame) = body.frame().await {
            if let Some(chunk) = frame?.data_ref() {
                lines.cut(chunk, |line| self.line(line))?;
            }
        }
        Ok(())
    }

    /// Reads all pages; returns the version of the first one.
    async fn list(&self, requests: &Requests) -> Result<String> {
        let (mut token, mut first) = (String::new(), None);
        loop {
            let body = requests.page(&token).await?;
            let page: Page = serde_json::from_slice(&body).context("a page of a list")?;
            self.tally
                .arrived(page.items.map_or(0, |items| items.len()));
            // All pages of a list are of one version.
            let version = first.get_or_insert(page.metadata.version);
            if page.metadata.token.is_empty() {
                return Ok(version.clone());
            }
            // Tokens are of letters, digits, hyphens and underscores, padded with equals signs.
            token = format!("&continue={}", page.metadata.token.replace('=', "%3D"));
        }
    }

    fn line(&self, line: &[u8]) -> Result<()> {
        if line.starts_with(BOOKMARK) {
            return Ok(());
        }
        if line.starts_with(ERROR) {
            bail!("the watch says: {}", String::from_utf8_lossy(line));
        }
        if self.scans {
            let _: IgnoredAny = serde_json::from_slice(line).context("a line of a watch")?;
        }
        match &self.stamper {
            // The time first: the search is no part of the way here.
            Some(stamper) => {
                let now = meter::micros();
                self.tally.arrived_from(stamper.find(line), now);
            }
            None => self.tally.arrived(1),
        }
        Ok(())
    }
}

/// Cuts a stream of bytes into lines, and copies only those that come in pieces.
#[derive(Debug, Default)]
struct Lines {
    /// The beginning of a line whose end has not come.
    begun: Vec<u8>,
}

impl Lines {
    fn cut(&mut self, chunk: &[u8], mut line: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let mut rest = chunk;
        while let Some(at) = memchr(b'\n', rest) {
            let (end, next) = (&rest[..at], &rest[at + 1..]);
            if self.begun.is_empty() {
                line(end)?;
            } else {
                self.begun.extend_from_slice(end);
                line(&self.begun)?;
                self.begun.clear();
            }
            rest = next;
        }
        // A chunk may end within a line.
        self.begun.extend_from_slice(rest);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_do_not_depend_on_how_the_bytes_arrive() {
        for size in 1..9 {
            let (mut lines, mut cut) = (Lines::default(), Vec::new());
            for chunk in b"a\nbcd\n\nefg\nh".chunks(size) {
                let mut note = |line: &[u8]| {
                    cut.push(String::from_utf8_lossy(line).into_owned());
                    Ok(())
                };
                lines.cut(chunk, &mut note).unwrap();
            }
            assert_eq!(cut, ["a", "bcd", "", "efg"], "chunks of {size}");
            assert_eq!(lines.begun, b"h");
        }
    }

    #[test]
    fn lines_about_no_pod_do_not_count_and_damaged_ones_fail() {
        let floor = Floor {
            tally: Tally::new(2, 1, true),
            scans: true,
            stamper: None,
        };
        floor.line(br#"{"type":"BOOKMARK","object":{}}"#).unwrap();
        floor.line(br#"{"type":"ADDED","object":{}}"#).unwrap();
        assert_eq!(floor.tally.runs(), 1);
        assert!(
            floor
                .line(br#"{"type":"ERROR","object":{"code":410}}"#)
                .is_err()
        );
        assert!(floor.line(br#"{"type":"ADDED","object":{"#).is_err());
        assert_eq!(floor.tally.runs(), 1);
    }
}
