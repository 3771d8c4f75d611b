//! The command line of Lariat: a Kubernetes cluster in memory, operators to begin with, and questions to a cluster.

mod arguments;
mod cluster;
mod help;
mod kubeconfig;
mod query;
mod quote;
mod replay;
mod scaffold;
mod seed;
mod signal;
mod token;

use std::io::Write;
use std::process::ExitCode;

use arguments::{Command, UsageError};

/// What the process ends with when it was called wrongly, as is the custom.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let token = std::env::var_os(arguments::TOKEN);
    let command = match arguments::parse(std::env::args_os().skip(1), token) {
        Ok(command) => command,
        Err(error) => return wrong(&error),
    };
    let done = match command {
        Command::Print(text) => print(&text),
        Command::Cluster(options) => cluster::run(&options),
        Command::New(options) => scaffold::run(&options).and_then(|text| print(&text)),
        Command::Query(options) => query::run(&options),
        Command::Replay(options) => return ended(replay::run(&options)),
    };
    ended(done.map(|()| ExitCode::SUCCESS))
}

fn ended(done: anyhow::Result<ExitCode>) -> ExitCode {
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn wrong(error: &UsageError) -> ExitCode {
    eprintln!("error: {error}");
    ExitCode::from(USAGE)
}

fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}
