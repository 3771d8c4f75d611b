//! What runs play on: a server for those that need one, and a process for each.

use anyhow::{Context, Result};

use crate::bench::Run;
use crate::live;
use crate::process::Process;
use crate::report::Row;

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
    /// Plays one run in a process of its own.
    pub(crate) fn play(&mut self, run: &Run) -> Result<Row> {
        let (case, subject) = (&run.case, &run.subject);
        let played = self.played(run);
        played.with_context(|| format!("{case} of {subject}"))
    }

    fn played(&mut self, run: &Run) -> Result<Row> {
        let text = serde_json::to_string(run)?;
        let Some(pods) = run.pods else {
            let mut child = Process::spawn(&["child", &text, ""])?;
            return Ok(serde_json::from_str(&child.hear()?)?);
        };
        let storms = live::storms(&run.bench);
        let modifications = run.n.filter(|_| storms).unwrap_or(1);
        let server = self.server(pods, modifications)?;
        let mut child = Process::spawn(&["child", &text, &server.url])?;
        if storms {
            child.hear_after("ready")?;
            let question = format!("modify {modifications}");
            let floor = server.process.ask_after(&question, "modified")?;
            child.ask_after(&format!("go {floor}"), "going")?;
            server.process.ask_after("release", "released")?;
        } else if run.bench == "relist" {
            child.hear_after("ready")?;
            let floor = server.process.ask_after("expire", "expired")?;
            child.ask_after(&format!("go {floor}"), "going")?;
            server.process.ask_after("release", "released")?;
        }
        Ok(serde_json::from_str(&child.hear()?)?)
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
