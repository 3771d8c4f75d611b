//! `lariat cluster` as a process, and what it has cost.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::bench::Run;

/// The server; it is ended when this is dropped.
#[derive(Debug)]
pub(super) struct Program {
    child: Child,
    pub(super) address: SocketAddr,
    data: Option<PathBuf>,
}

impl Program {
    /// Starts the server and waits until it serves.
    pub(super) fn start(run: &Run, options: &[&str]) -> Result<Self> {
        let program = std::env::current_exe()?.with_file_name("lariat");
        ensure!(
            program.exists(),
            "{} is missing; `cargo build --profile dist -p lariat-cli` makes it",
            program.display()
        );
        let data = (run.subject == "data").then(|| {
            let name = format!("lariat-bench-{}.db", std::process::id());
            std::env::temp_dir().join(name)
        });
        let mut command = Command::new(program);
        command.args(["cluster", "--listen", "127.0.0.1:0"]);
        command.args(options);
        if let Some(data) = &data {
            command.arg("--data").arg(data);
        }
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut program = Self {
            child,
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            data,
        };
        let output = program.child.stdout.take().context("its output is piped")?;
        let mut line = String::new();
        // The pipe is closed after this line; the server prints nothing more on it.
        BufReader::new(output).read_line(&mut line)?;
        let address = line.trim().strip_prefix("ready http://");
        program.address = address.context("the server says where it is")?.parse()?;
        Ok(program)
    }

    /// Returns the seconds the server has computed, counted in hundredths.
    pub(super) fn cpu_seconds(&self) -> f64 {
        let stat =
            fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        // The name of the program, in parentheses, may have blanks.
        let fields = stat.rsplit(')').next().unwrap_or_default();
        let ticks: f64 = fields
            .split_whitespace()
            // `utime` and `stime`, the 14th and 15th field of proc(5). The process identifier and the name are cut
            // off.
            .skip(11)
            .take(2)
            .filter_map(|field| field.parse::<f64>().ok())
            .sum();
        // `USER_HZ`, which is 100 on all architectures of Linux that matter here.
        ticks / 100.0
    }

    /// Returns the memory the server holds now, and the most it has held, in MB.
    pub(super) fn memory_mb(&self) -> (f64, f64) {
        let status =
            fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let value = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
            kilobytes.unwrap_or(0.0) * 1024.0 / 1e6
        };
        (value("VmRSS:"), value("VmHWM:"))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        for suffix in ["", "-wal", "-shm"] {
            if let Some(data) = &self.data {
                let mut file = data.clone().into_os_string();
                file.push(suffix);
                let _ = fs::remove_file(file);
            }
        }
    }
}
