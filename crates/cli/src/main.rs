//! The command line of Lariat: a Kubernetes cluster in memory, scaffolds of operators, queries, and a look into running
//! programs.

mod arguments;
mod cluster;
mod completions;
mod console;
mod kubeconfig;
mod query;
mod quote;
mod scaffold;
mod seed;
mod signal;
mod status;
#[cfg(test)]
mod testing;
mod token;
mod top;
mod why;

use std::io::Write;
use std::process::ExitCode;

use arguments::Command;

fn main() -> ExitCode {
    let command = match arguments::parse(std::env::args_os(), |name| std::env::var_os(name)) {
        Ok(command) => command,
        Err(error) => return explained(&error),
    };
    let done = match command {
        Command::Cluster(options) => cluster::run(&options),
        Command::New(options) => scaffold::run(&options).and_then(|text| print(&text)),
        Command::Add(options) => scaffold::add(&options).and_then(|text| print(&text)),
        Command::Crd(options) => return ended(scaffold::print_definitions(&options)),
        Command::Query(options) => query::run(&options),
        Command::Top(options) => return ended(top::run(&options)),
        Command::Why(options) => return ended(why::run(&options)),
        Command::Status(options) => return ended(status::run(&options)),
        Command::Completions(options) => print(&arguments::completions(options)),
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

/// Prints the error of the arguments, the help or the version.
fn explained(error: &clap::Error) -> ExitCode {
    // If the reader of the output is gone, there is nothing left to do.
    let _ = error.print();
    u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
}

fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}
