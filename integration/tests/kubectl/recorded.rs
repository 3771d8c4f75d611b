//! kubectl's output, beside what it prints on a genuine server.
//!
//! A file in `recorded/` is a session in one namespace: `$` begins a command (`~` one that is repeated until it
//! succeeds), `|` is its input, and `>`, `!` and `=` are what a genuine server led to: output, errors, exit code. `#`
//! before a command says why the embedded cluster differs; such a command runs and is not compared. The files are
//! written by `LARIAT_RECORD=1 KUBECONFIG=… cargo nextest run -p lariat-integration --test kubectl recorded`, on a
//! server as `cluster/scripts/differential.sh` needs it.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lariat_cluster::{Cluster, User};
use lariat_integration::{Ended, Kubectl};
use regex::Regex;
use tokio::time::{Instant, sleep};

#[tokio::test]
async fn recorded_creations_print_the_same() {
    check("create").await.unwrap();
}

#[tokio::test]
async fn recorded_reads_print_the_same() {
    check("get").await.unwrap();
}

#[tokio::test]
async fn recorded_descriptions_of_all_kinds_print_the_same() {
    check("describe").await.unwrap();
}

#[tokio::test]
async fn recorded_changes_print_the_same() {
    check("change").await.unwrap();
}

#[tokio::test]
async fn recorded_commands_about_the_cluster_print_the_same() {
    check("cluster").await.unwrap();
}

/// One command of a session, and what it led to.
#[derive(Debug, Default)]
struct Command {
    differs: Vec<String>,
    line: String,
    repeats: bool,
    input: String,
    expected: String,
}

/// Runs a session, and compares it with its file or writes that.
async fn check(name: &str) -> Result<()> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join(format!("tests/kubectl/recorded/{name}.txt"));
    let mut session = parse(&std::fs::read_to_string(&path)?);
    let records = std::env::var_os("LARIAT_RECORD").is_some();
    let user = User::new("admin").group("system:masters");
    // The recordings were made without the controller that says what quotas bound.
    let cluster = Cluster::builder()
        .quotas(false)
        .token_of("admin", user)
        .rbac()
        // Over plain HTTP kubectl keeps its token to itself.
        .tls_generated()
        .listen()
        .start()
        .await?;
    let kubeconfig = cluster.kubeconfig().context("it listens")?;
    let is_given = std::env::var_os("KUBECONFIG").is_some_and(|paths| !paths.is_empty());
    ensure!(
        is_given || !records,
        "KUBECONFIG must be that of a genuine server to record from"
    );
    let namespace = format!("k{:07x}", fastrand::u32(..0x1000_0000));
    let kubectl = Kubectl::new((!is_given).then_some(&kubeconfig), &namespace)?;
    kubectl
        .run(&format!("create namespace {namespace}"))
        .await?;

    let normal = Normal::new(&namespace);
    let mut wrong = String::new();
    for command in &mut session {
        let printed = normal.ended(&run(&kubectl, command, &namespace).await?);
        if records {
            command.expected = printed;
        } else if command.expected != printed && command.differs.is_empty() {
            let (line, expected) = (&command.line, &command.expected);
            let _ = writeln!(wrong, "$ {line}\nexpected:\n{expected}printed:\n{printed}");
        }
    }
    kubectl
        .run(&format!("delete namespace {namespace} --wait=false"))
        .await?;
    if records {
        std::fs::write(&path, written(&session))?;
    }
    ensure!(wrong.is_empty(), "\n{wrong}");
    Ok(())
}

async fn run(kubectl: &Kubectl, command: &Command, namespace: &str) -> Result<Ended> {
    let fill = |text: &str| text.replace("NS", namespace);
    let words = words(&fill(&command.line));
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let ended = kubectl.ended(&words, &fill(&command.input)).await?;
        if !command.repeats || ended.code == Some(0) || Instant::now() > end {
            return Ok(ended);
        }
        sleep(Duration::from_millis(200)).await;
    }
}

/// Splits a line at blanks that are not between quotes.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for character in line.chars() {
        match character {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(std::mem::take(&mut word)),
            other => word.push(other),
        }
    }
    words.push(word);
    words
}

fn parse(text: &str) -> Vec<Command> {
    let mut session: Vec<Command> = Vec::new();
    let mut differs = Vec::new();
    for line in text.lines() {
        let (mark, rest) = line.split_at(line.len().min(1));
        let rest = rest.strip_prefix(' ').unwrap_or(rest);
        match mark {
            "#" => differs.push(rest.to_owned()),
            "$" | "~" => session.push(Command {
                differs: std::mem::take(&mut differs),
                line: rest.to_owned(),
                repeats: mark == "~",
                ..Command::default()
            }),
            _ => {
                let command = session.last_mut().expect("a command comes first");
                match mark {
                    "|" => command.input += &format!("{rest}\n"),
                    _ => command.expected += &format!("{line}\n"),
                }
            }
        }
    }
    session
}

fn written(session: &[Command]) -> String {
    let mut text = String::new();
    for command in session {
        for reason in &command.differs {
            let _ = writeln!(text, "# {reason}");
        }
        let mark = if command.repeats { '~' } else { '$' };
        let _ = writeln!(text, "{mark} {}", command.line);
        for line in command.input.lines() {
            let _ = writeln!(text, "| {line}");
        }
        text += &command.expected;
    }
    text
}

/// Takes out of a text what no two servers have in common.
struct Normal {
    rules: Vec<(Regex, &'static str)>,
}

impl Normal {
    fn new(namespace: &str) -> Self {
        let rules = [
            (namespace, "NS"),
            ("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UID"),
            (
                r"20(2[1-9]|[3-9]\d)-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z",
                "TIME",
            ),
            (
                r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} [\d:]{8} \S+",
                "TIME",
            ),
            (r#"(resourceVersion"?: ?)"\d+""#, "${1}RV"),
            (r"(Resource Version: +)\d+", "${1}RV"),
            (r"gen-[a-z0-9]{5}\b", "gen-SUFFIX"),
            (r"\b\d+(\.\d+)?m?s( ago)?$", "AGE"),
            (r"\b10\.\d+\.\d+\.\d+\b", "IP"),
            (r":3[0-2]\d{3}/", ":PORT/"),
            (r"(?i)(nodePort: )\d+", "${1}PORT"),
            (r"https?://[\w.:]+:\d+", "URL"),
            (r"\b\d+s\b", "AGE"),
        ];
        let compiled = rules.map(|(rule, by)| {
            (
                Regex::new(&format!("(?m){rule}")).expect("the pattern is correct"),
                by,
            )
        });
        Self {
            rules: compiled.into(),
        }
    }

    fn ended(&self, ended: &Ended) -> String {
        let mut text = String::new();
        for (mark, part) in [('>', &ended.stdout), ('!', &ended.stderr)] {
            for line in self.text(part).lines() {
                // How wide a column is depends on the ages in it.
                let line = line.trim_end();
                let line = if line.contains("  ") && !line.starts_with(' ') {
                    line.split_whitespace().collect::<Vec<_>>().join(" ")
                } else {
                    line.to_owned()
                };
                let _ = writeln!(text, "{mark} {line}");
            }
        }
        if ended.code != Some(0) {
            let _ = writeln!(text, "= {}", ended.code.unwrap_or(-1));
        }
        text
    }

    fn text(&self, text: &str) -> String {
        let normal =
            |text: String, (rule, by): &(Regex, &str)| rule.replace_all(&text, *by).into_owned();
        self.rules.iter().fold(text.to_owned(), normal)
    }
}
