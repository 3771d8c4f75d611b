//! Asking for a history, and printing it.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, anyhow};
use lariat_console::api::{KeyDetail, KindNames, KindRef, Link, RunInfo};
use serde_json::Value;
use tokio::time::sleep;

use super::options::Options;
use super::text;
use super::trace::{Explained, Trace};
use crate::console::{
    AskError, Console, Line, NAMES, Output, Printer, choose, choose_named, key_path,
    run_until_asked,
};

/// How often new runs are asked for.
const PERIOD: Duration = Duration::from_secs(1);

/// Shows the history of a key.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    run_until_asked(show(options))
}

async fn show(options: &Options) -> Result<ExitCode> {
    let console = Console::connect(&options.source).await?;
    let mut printer = Printer::new();
    // The kind as the program has it: its group and version are part of the path to ask.
    let overview = console.overview().await?.value;
    let kinds: Vec<KindRef> = overview.controllers.into_iter().map(|it| it.kind).collect();
    let kind = kind_of(&console, &kinds, options).await?;
    let path = key_path(&kind, &options.key);
    let key = match console.get::<KeyDetail>(&path).await {
        Ok(answer) => answer.value,
        Err(error) => return Err(error.into()),
    };
    let of = Link {
        kind: kind.clone(),
        key: options.key.to_string(),
    };
    let mut trace = Trace::new(&console, options.depth, of);
    let mut runs = Vec::new();
    for run in newest(&key.runs, options.runs) {
        runs.push(trace.explain(run).await?);
    }
    let mut follow = Follow {
        output: options.output,
        // The newest of all runs, not only of those shown: older ones must not appear as new later.
        last: key.runs.iter().map(|run| run.run).max(),
        is_lost: false,
    };
    match (options.output, options.follow) {
        (Output::Text, _) => printer.lines(&text::history(&key, &runs))?,
        (Output::Json, false) => printer.json(&history(&key, &runs)?)?,
        (Output::Json, true) => runs
            .iter()
            .try_for_each(|run| follow.print(run, &mut printer))?,
    }
    while options.follow && printer.is_read() {
        sleep(PERIOD).await;
        let next = follow.next(&console, &path, &mut trace).await;
        if let Some(note) = follow.note(next.as_ref().err()) {
            eprintln!("{note}");
        }
        // An error was noted above, and `--follow` goes on.
        let runs = next.unwrap_or_default();
        runs.iter()
            .try_for_each(|run| follow.print(run, &mut printer))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Finds the kind that the options name, among those with a controller.
async fn kind_of(console: &Console, kinds: &[KindRef], options: &Options) -> Result<KindRef> {
    let factory = options.factory.as_deref();
    match choose(kinds, &options.kind, factory) {
        Ok(kind) => Ok(kind),
        // Discovery knows the short names of CRDs. It is asked last, since the program asks its API server for it.
        Err(unknown) => {
            let names = console.get::<Vec<KindNames>>(NAMES).await;
            let named = names.ok();
            let named = named.and_then(|it| choose_named(&it.value, &options.kind, factory));
            named.ok_or_else(|| anyhow!(unknown))
        }
    }
}

/// Returns the answer as JSON: a key, whose runs have what caused them.
fn history(key: &KeyDetail, runs: &[Explained]) -> Result<Value> {
    let mut json = serde_json::to_value(key)?;
    json["runs"] = serde_json::to_value(runs)?;
    Ok(json)
}

/// Returns the newest runs, oldest first.
fn newest(runs: &[RunInfo], count: usize) -> Vec<RunInfo> {
    runs.iter().take(count).rev().cloned().collect()
}

/// What has been shown of a key.
struct Follow {
    output: Output,
    /// The number of the last run.
    last: Option<u64>,
    /// Whether the console did not answer last time.
    is_lost: bool,
}

impl Follow {
    /// Asks for the runs that are new.
    async fn next(
        &mut self,
        console: &Console,
        path: &str,
        trace: &mut Trace<'_, Console>,
    ) -> Result<Vec<Explained>, AskError> {
        let key: KeyDetail = match console.get(path).await {
            Ok(answer) => answer.value,
            // The key has left the cache, or the program has started again and does not know it yet.
            Err(error) if error.is_missing() => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut explained = Vec::new();
        let before = self.last;
        for run in self.take(&key.runs) {
            match trace.explain(run).await {
                Ok(run) => explained.push(run),
                Err(error) => {
                    // They come again with the next answer.
                    self.last = before;
                    return Err(error);
                }
            }
        }
        Ok(explained)
    }

    /// Returns the notices for when the console stops and resumes answering.
    fn note(&mut self, error: Option<&AskError>) -> Option<String> {
        let was_lost = std::mem::replace(&mut self.is_lost, error.is_some());
        match error {
            Some(error) if !was_lost => Some(format!("connection lost: {error}; trying again")),
            None if was_lost => Some("connected again".to_owned()),
            _ => None,
        }
    }

    /// Returns the runs that are new, oldest first.
    fn take(&mut self, runs: &[RunInfo]) -> Vec<RunInfo> {
        let Some(newest) = runs.iter().map(|run| run.run).max() else {
            return Vec::new();
        };
        // A program that has started again counts from the beginning.
        if Some(newest) < self.last {
            self.last = None;
        }
        let is_new = |run: &&RunInfo| Some(run.run) > self.last;
        let new: Vec<RunInfo> = runs.iter().filter(is_new).rev().cloned().collect();
        self.last = Some(newest);
        new
    }

    fn print(&self, run: &Explained, printer: &mut Printer) -> Result<()> {
        if self.output == Output::Json {
            return printer.json_line(run);
        }
        let mut lines = vec![Line::default()];
        lines.extend(text::explained(run));
        printer.lines(&lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::samples;

    #[test]
    fn each_run_is_shown_once_and_a_program_may_start_again() {
        let runs = samples::key().runs;
        let mut follow = Follow {
            output: Output::Text,
            last: Some(41),
            is_lost: false,
        };
        let mut numbers = |runs: &[RunInfo]| -> Vec<u64> {
            follow.take(runs).iter().map(|run| run.run).collect()
        };
        assert_eq!(numbers(&runs), [42]);
        assert_eq!(numbers(&runs), [0; 0]);
        let mut again = runs.clone();
        (again[0].run, again[1].run) = (2, 1);
        assert_eq!(numbers(&again), [1, 2]);
        assert_eq!(numbers(&[]), [0; 0]);
        assert_eq!(numbers(&again[1..]), [1]);
    }

    #[test]
    fn a_lost_console_is_reported_once_until_it_answers() {
        let mut follow = Follow {
            output: Output::Text,
            last: None,
            is_lost: false,
        };
        let error = AskError::Refused("http://a:1".to_owned());
        let mut note = |error: Option<&AskError>| follow.note(error).unwrap_or_default();
        assert_eq!(note(None), "");
        let lost = note(Some(&error));
        assert!(
            lost.starts_with("connection lost: cannot reach a console at http://a:1: "),
            "{lost}"
        );
        assert_eq!(note(Some(&error)), "");
        assert_eq!(note(None), "connected again");
    }

    #[test]
    fn json_has_the_runs_with_their_causes() {
        let key = samples::key();
        let runs: Vec<Explained> = newest(&key.runs, 1)
            .into_iter()
            .map(|run| Explained {
                run,
                caused_by: Vec::new(),
            })
            .collect();
        let json = history(&key, &runs).unwrap();
        assert_eq!(json["name"], "web");
        assert_eq!(json["runs"].as_array().map(Vec::len), Some(1));
        assert_eq!(json["runs"][0]["run"], 42);
        assert_eq!(json["runs"][0]["causedBy"], serde_json::json!([]));
    }
}
