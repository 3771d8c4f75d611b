//! A PostgreSQL server of a test's own, from Debian's packages. It ends with the test, whatever becomes of that.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// A server that listens on a socket in a folder of its own.
pub(crate) struct Server {
    /// Where its files are.
    pub(crate) folder: PathBuf,
    /// What it is started with beside the usual.
    pub(crate) settings: Vec<String>,
    /// None if another process runs it.
    pub(crate) running: Option<Child>,
    /// Whether another process deletes its files.
    pub(crate) is_borrowed: bool,
}

impl Server {
    /// Starts one; it has the database `postgres` and the user `lariat`, who needs no password.
    pub(crate) fn start() -> Self {
        Self::start_with(&[], &[])
    }

    /// Starts one with further settings and files.
    pub(crate) fn start_with(settings: &[&str], files: &[(&str, &str)]) -> Self {
        let folder = std::env::temp_dir().join(format!("lariat-pg-{:016x}", fastrand::u64(..)));
        std::fs::create_dir(&folder).expect("a folder is made");
        let mut server = Self {
            folder,
            settings: settings.iter().map(ToString::to_string).collect(),
            running: None,
            is_borrowed: false,
        };
        let (from, to) = (template(), server.folder.join("data"));
        run(Command::new("cp")
            .args(["-a", "--reflink=auto"])
            .arg(from)
            .arg(&to));
        for (name, content) in files {
            let file = server.folder.join("data").join(name);
            std::fs::write(&file, content).expect("written");
            run(Command::new("chmod").arg("600").arg(&file));
        }
        give_away(&server.folder);
        server.resume();
        server
    }

    /// Returns how to connect to it.
    pub(crate) fn url(&self) -> String {
        format!(
            "postgresql:///postgres?user=lariat&host={}",
            self.folder.display()
        )
    }

    /// Runs statements as the owner of everything; returns what they print.
    pub(crate) fn sql(&self, sql: &str) -> String {
        let mut psql = Command::new(bin().join("psql"));
        psql.args(["-qAtX", "-U", "lariat", "-d", "postgres", "-c", sql, "-h"]);
        let said = run(psql.arg(&self.folder)).stdout;
        String::from_utf8(said).expect("UTF-8").trim().to_owned()
    }

    /// Ends it and all connections, as a crash does.
    pub(crate) fn kill(&mut self) {
        if let Some(mut running) = self.running.take() {
            // It ends its processes immediately, and nothing is written to the files any more.
            let id = running.id().to_string();
            run(Command::new("kill").args(["-s", "QUIT", &id]));
            running.wait().expect("it has ended");
        }
    }

    /// Starts it again with what it had on disk.
    pub(crate) fn resume(&mut self) {
        let data = self.folder.join("data");
        // What a killed one has left; its last processes may be about to end.
        let _ = std::fs::remove_file(data.join("postmaster.pid"));
        let settings = [
            "listen_addresses=",
            "fsync=off",
            "full_page_writes=off",
            "shared_buffers=16MB",
            "autovacuum=off",
            "max_connections=60",
            &format!("unix_socket_directories={}", self.folder.display()),
        ];
        for _ in 0..500 {
            let mut command = as_owner(&["--pdeathsig", "KILL"], "postgres");
            command.arg("-D").arg(&data);
            command.args(settings.iter().flat_map(|setting| ["-c", setting]));
            let further = self.settings.iter();
            command.args(further.flat_map(|setting| ["-c", setting]));
            command.stderr(Stdio::piped()).stdout(Stdio::null());
            let mut running = command.spawn().expect("it starts");
            let mut log = BufReader::new(running.stderr.take().expect("its log"));
            if is_ready(&mut log) {
                // A writer waits if its pipe is not read.
                std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
                self.running = Some(running);
                return;
            }
            running.wait().expect("it has ended");
        }
        panic!("the server does not start");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !self.is_borrowed {
            self.kill();
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

/// Reads the log until the server is ready; false if it ends before.
fn is_ready(log: &mut impl BufRead) -> bool {
    let mut line = String::new();
    while log.read_line(&mut line).expect("readable") > 0 {
        if line.contains("ready to accept connections") {
            return true;
        }
        line.clear();
    }
    false
}

/// Returns the folder of the newest server's programs.
fn bin() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten();
    let mut bins: Vec<PathBuf> = versions.flatten().map(|it| it.path().join("bin")).collect();
    bins.retain(|bin| bin.join("initdb").exists());
    bins.sort();
    let newest = bins.pop();
    newest.expect(
        "PostgreSQL is installed (Debian: apt install postgresql); scripts/test.sh --all does it",
    )
}

/// Returns a cluster that is copied, which takes a tenth of the time of making one. It is made once for all tests.
fn template() -> PathBuf {
    let program = std::env::current_exe().expect("it runs");
    let folder = program.parent().expect("it is in a folder");
    let template = folder.join("lariat-postgres");
    let lock = File::create(folder.join("lariat-postgres.lock")).expect("a file");
    lock.lock().expect("locked");
    if !template.exists() {
        let name = format!("lariat-pg-{:016x}", fastrand::u64(..));
        let made = std::env::temp_dir().join(name);
        std::fs::create_dir(&made).expect("a folder is made");
        give_away(&made);
        let mut initdb = as_owner(&[], "initdb");
        let options = [
            "--no-sync",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
            "--locale-provider=icu",
            "--icu-locale=en-US",
            "-U",
            "lariat",
        ];
        run(initdb.args(options).arg("-D").arg(made.join("data")));
        let part = folder.join("lariat-postgres.part");
        let _ = std::fs::remove_dir_all(&part);
        run(Command::new("cp")
            .arg("-a")
            .arg(made.join("data"))
            .arg(&part));
        std::fs::rename(&part, &template).expect("renamed");
        let _ = std::fs::remove_dir_all(&made);
    }
    template
}

/// Makes a command that is not run by root, who may not start a server.
fn as_owner(options: &[&str], program: &str) -> Command {
    let mut command = Command::new("setpriv");
    if is_root() {
        command.args([
            "--reuid",
            "postgres",
            "--regid",
            "postgres",
            "--clear-groups",
        ]);
    }
    command.args(options).arg(bin().join(program));
    command.current_dir("/");
    command
}

fn give_away(folder: &Path) {
    if is_root() {
        run(Command::new("chown")
            .args(["-R", "postgres:postgres"])
            .arg(folder));
    }
}

fn is_root() -> bool {
    let said = run(Command::new("id").arg("-u")).stdout;
    said == b"0\n"
}

fn run(command: &mut Command) -> Output {
    let output = command.output().expect("it is installed");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    output
}
