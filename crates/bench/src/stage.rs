//! What runs play on: a server for those that need one, and a process for each.

use anyhow::{Context, Result, ensure};

use crate::bench::Run;
use crate::live;
use crate::options::Genuine;
use crate::process::Process;
use crate::report::Row;
use crate::sql;
use crate::target::Target;

/// Runs measurements in order; a server is kept while runs need one like it.
#[derive(Debug)]
pub(crate) struct Stage {
    /// The server that is used, if it is not the embedded one.
    genuine: Option<Genuine>,
    server: Option<Server>,
}

#[derive(Debug)]
struct Server {
    process: Process,
    pods: usize,
    modifications: usize,
    target: Target,
}

impl Stage {
    pub(crate) fn new(genuine: Option<Genuine>) -> Self {
        Self {
            genuine,
            server: None,
        }
    }

    /// Plays one run in a process of its own; returns a row for each case it measures.
    pub(crate) fn play(&mut self, run: &Run) -> Result<Vec<Row>> {
        let (case, subject) = (&run.case, &run.subject);
        let played = self.played(run.clone());
        played.with_context(|| format!("{case} of {subject}"))
    }

    /// Ends the server, if there is one.
    pub(crate) fn end(self) -> Result<()> {
        self.server.map_or(Ok(()), Server::end)
    }

    fn played(&mut self, mut run: Run) -> Result<Vec<Row>> {
        let Some(pods) = run.pods else {
            return play(&run, &Target::default(), None);
        };
        let is_made = self.genuine.as_ref().is_none_or(|genuine| genuine.is_made);
        let server = self.server(if is_made { pods } else { 0 }, changes(&run))?;
        if !is_made {
            let there = server.process.ask_after("count", "counted")?.parse()?;
            ensure!(
                there > 0,
                "there are no pods on the server; --create makes some"
            );
            (run.n, run.pods) = (Some(there), Some(there));
        }
        let rows = play(&run, &server.target, Some(&mut server.process))?;
        // The next subject reads its pods at no pace.
        server.process.ask_after("release", "released")?;
        Ok(rows)
    }

    fn server(&mut self, pods: usize, modifications: usize) -> Result<&mut Server> {
        // A server with a longer history than needed behaves the same, and filling another one takes a while.
        let fits = |server: &Server| server.pods == pods && server.modifications >= modifications;
        if !self.server.as_ref().is_some_and(fits) {
            // Two at a time would need the memory of both.
            if let Some(server) = self.server.take() {
                server.end()?;
            }
            self.server = Some(match &self.genuine {
                Some(genuine) => Server::attend(&genuine.target, pods)?,
                None => Server::start(pods, modifications)?,
            });
        }
        self.server.as_mut().context("it was just started")
    }
}

/// Plays a run, for which a server does what the run is about.
fn play(run: &Run, target: &Target, server: Option<&mut Process>) -> Result<Vec<Row>> {
    let (text, described) = (serde_json::to_string(run)?, serde_json::to_string(target)?);
    // A new process for each run: memory that an earlier run has left in the allocator must not count.
    let mut child = Process::spawn(&["child", &text, &described])?;
    let mut void = 0;
    let said = match (Cues::of(run), server) {
        (Some(cues), Some(server)) => {
            child.hear_after("ready")?;
            let before = loads(run, target, server)?;
            let floor = server.ask_after(&cues.prepare, "held")?;
            // The child answers once its clock runs; only then are the changes released.
            child.ask_after(&format!("go {floor}"), "going")?;
            server.ask_after(&cues.release, "released")?;
            let said = child.hear_beside(server)?;
            void = loads(run, target, server)?.saturating_sub(before);
            said
        }
        _ => child.hear()?,
    };
    let mut rows: Vec<Row> = serde_json::from_str(&said)?;
    rows.iter_mut().for_each(|row| row.void = void);
    Ok(rows)
}

/// Returns the number of lists and watches of pods that a run must not cause.
fn loads(run: &Run, target: &Target, server: &mut Process) -> Result<usize> {
    if target.is_genuine || !live::watches_on(&run.bench) {
        return Ok(0);
    }
    Ok(server.ask_after("loads", "loaded")?.parse()?)
}

/// What the server is asked once a subject has seen all pods.
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
    /// Starts the embedded server.
    fn start(pods: usize, modifications: usize) -> Result<Self> {
        let (count, changes) = (pods.to_string(), modifications.to_string());
        let mut process =
            Process::spawn(&["serve", "--pods", &count, "--modifications", &changes])?;
        let url = process.hear_after("ready")?;
        Ok(Self {
            process,
            pods,
            modifications,
            target: Target::embedded(url),
        })
    }

    /// Starts a process that creates pods on a genuine server.
    ///
    /// For zero pods it only checks the server.
    fn attend(target: &Target, pods: usize) -> Result<Self> {
        let (text, count) = (serde_json::to_string(target)?, pods.to_string());
        let mut process = Process::spawn_apart(&["attend", &text, &count])?;
        let ready = process.hear_after("ready")?;
        let namespace = Some(ready).filter(|namespace| !namespace.is_empty());
        Ok(Self {
            process,
            pods,
            modifications: usize::MAX,
            target: Target {
                namespace,
                ..target.clone()
            },
        })
    }

    fn end(mut self) -> Result<()> {
        self.clean_up()
    }

    /// Lets it delete what it has made on a genuine server.
    fn clean_up(&mut self) -> Result<()> {
        if self.target.is_genuine {
            self.process.end()?;
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Where a run has failed, that is what is reported; the process says itself what it could not delete.
        let _ = self.clean_up();
    }
}
