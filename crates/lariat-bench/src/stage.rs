//! What runs play on: a server for those that need one, and a process for each.

use anyhow::{Context, Result};

use crate::bench::Run;
use crate::live;
use crate::process::Process;
use crate::report::Row;
use crate::sql;

/// Plays runs one after the other; a server goes on for as long as runs need one like it.
#[derive(Debug, Default)]
pub(crate) struct Stage {
    server: Option<Server>,
}

#[derive(Debug)]
struct Server {
    process: Process,
    pods: usize,
    modifications: usize,
    url: String,
}

impl Stage {
    /// Plays one run in a process of its own; returns a row for each case it measures.
    pub(crate) fn play(&mut self, run: &Run) -> Result<Vec<Row>> {
        let (case, subject) = (&run.case, &run.subject);
        let played = self.played(run);
        played.with_context(|| format!("{case} of {subject}"))
    }

    fn played(&mut self, run: &Run) -> Result<Vec<Row>> {
        let text = serde_json::to_string(run)?;
        let Some(pods) = run.pods else {
            let mut child = Process::spawn(&["child", &text, ""])?;
            return Ok(serde_json::from_str(&child.hear()?)?);
        };
        let server = self.server(pods, changes(run))?;
        let mut child = Process::spawn(&["child", &text, &server.url])?;
        if let Some(cues) = Cues::of(run) {
            child.hear_after("ready")?;
            let floor = server.process.ask_after(&cues.prepare, "held")?;
            child.ask_after(&format!("go {floor}"), "going")?;
            server.process.ask_after(&cues.release, "released")?;
        }
        let rows = serde_json::from_str(&child.hear()?)?;
        // Whoever comes next reads its pods at no pace.
        server.process.ask_after("release", "released")?;
        Ok(rows)
    }

    fn server(&mut self, pods: usize, modifications: usize) -> Result<&mut Server> {
        let fits = |server: &Server| server.pods == pods && server.modifications >= modifications;
        if !self.server.as_ref().is_some_and(fits) {
            // Two at a time would need the memory of both.
            self.server = None;
            self.server = Some(Server::start(pods, modifications)?);
        }
        self.server.as_mut().context("it was just started")
    }
}

/// What the server is told once a subject has seen all pods.
struct Cues {
    /// Holds everything back, and makes something that is worth reading.
    prepare: String,
    /// Lets it go on.
    release: String,
}

impl Cues {
    /// Returns the cues of a run, if it is about more than seeing all pods.
    fn of(run: &Run) -> Option<Self> {
        let probes = run.n.unwrap_or(1);
        let prepare = match run.bench.as_str() {
            bench if live::storms(bench) => format!("modify {}", changes(run)),
            "sql" if sql::storms(run) => format!("modify {}", changes(run)),
            "relist" => "expire".to_owned(),
            "latency" => format!("probe {probes} {}", live::crowd(run)),
            _ => return None,
        };
        let pace = run.rate.map(|rate| format!("pace {rate}"));
        Some(Self {
            prepare,
            release: pace.unwrap_or_else(|| "release".to_owned()),
        })
    }
}

/// Returns how many changes the server makes in a run.
fn changes(run: &Run) -> usize {
    let n = run.n.unwrap_or(1);
    match run.bench.as_str() {
        bench if live::storms(bench) => n,
        "latency" => n * live::crowd(run),
        "sql" => sql::changes(n),
        _ => 1,
    }
}

impl Server {
    fn start(pods: usize, modifications: usize) -> Result<Self> {
        let (count, changes) = (pods.to_string(), modifications.to_string());
        let mut process =
            Process::spawn(&["serve", "--pods", &count, "--modifications", &changes])?;
        let url = process.hear_after("ready")?;
        Ok(Self {
            process,
            pods,
            modifications,
            url,
        })
    }
}
