//! The command line, read.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use lariat_cluster::Load;
use lexopt::prelude::*;

use crate::help;
use crate::query;
use crate::replay::{self, Show, When};
use crate::scaffold::{self, Group, Kind, Name, Source};
use crate::token::Token;

/// Where a cluster listens by default.
const ADDRESS: &str = "127.0.0.1:8001";

/// The group of a new operator's kind by default.
const DEFAULT_GROUP: &str = "demo.dev";

/// The environment variable that has the token, which no other user of the machine can see there.
pub(crate) const TOKEN: &str = "LARIAT_TOKEN";

/// What the user wants.
#[derive(Debug, PartialEq)]
pub(crate) enum Command {
    /// A text.
    Print(String),
    /// A cluster.
    Cluster(Box<Options>),
    /// A new operator.
    New(Box<scaffold::Options>),
    /// Objects of a cluster.
    Query(Box<query::Options>),
    /// What a flight recorder recorded.
    Replay(Box<replay::Options>),
}

/// The options of `lariat cluster`.
#[derive(Debug, PartialEq)]
pub(crate) struct Options {
    pub(crate) listen: SocketAddr,
    pub(crate) kubeconfig: Option<PathBuf>,
    pub(crate) data: Option<PathBuf>,
    pub(crate) seeds: Vec<PathBuf>,
    pub(crate) load: Option<Load>,
    pub(crate) switches: Switches,
    pub(crate) token: Option<Token>,
}

/// The options that are there or not.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Switches {
    pub(crate) simulate_workloads: bool,
    pub(crate) tls: bool,
    pub(crate) admin: bool,
}

/// The command line makes no sense; the text says what to do.
#[derive(Debug, PartialEq)]
pub(crate) struct UsageError(pub(crate) String);

impl std::fmt::Display for UsageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<lexopt::Error> for UsageError {
    fn from(error: lexopt::Error) -> Self {
        Self(error.to_string())
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8001)),
            kubeconfig: None,
            data: None,
            seeds: Vec::new(),
            load: None,
            switches: Switches::default(),
            token: None,
        }
    }
}

/// Reads the arguments behind the program's name; `token` is what the environment has for [`TOKEN`].
pub(crate) fn parse(
    arguments: impl IntoIterator<Item = OsString>,
    token: Option<OsString>,
) -> Result<Command, UsageError> {
    let mut parser = lexopt::Parser::from_args(arguments);
    match parser.next()? {
        Some(Short('h') | Long("help")) => Ok(Command::Print(help::LARIAT.to_owned())),
        Some(Short('V') | Long("version")) => Ok(Command::Print(help::VERSION.to_owned())),
        Some(Value(name)) if name == "cluster" => cluster(&mut parser, token),
        Some(Value(name)) if name == "new" => new(&mut parser),
        Some(Value(name)) if name == "query" => query::parse(&mut parser),
        Some(Value(name)) if name == "replay" => replay(&mut parser),
        Some(Value(name)) if name == "help" => Ok(Command::Print(help::LARIAT.to_owned())),
        Some(Value(name)) => Err(UsageError(format!(
            "there is no command {name:?}; there are `lariat cluster`, `lariat new`, `lariat query` and `lariat replay`"
        ))),
        Some(argument) => Err(unknown(&argument, "lariat --help")),
        None => Err(UsageError(
            "no command is given; try `lariat cluster`, or `lariat --help`".to_owned(),
        )),
    }
}

fn cluster(
    parser: &mut lexopt::Parser,
    environment: Option<OsString>,
) -> Result<Command, UsageError> {
    let mut options = Options::default();
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(Command::Print(help::CLUSTER.to_owned())),
            Short('V') | Long("version") => return Ok(Command::Print(help::VERSION.to_owned())),
            Long("listen") => options.listen = address(&text(parser, "listen")?)?,
            Long("kubeconfig") => options.kubeconfig = Some(path(parser, "kubeconfig")?),
            Long("data") => options.data = Some(path(parser, "data")?),
            Long("seed") => options.seeds.push(path(parser, "seed")?),
            Long("load") => options.load = Some(load(&text(parser, "load")?)?),
            Long("token") => token(&mut options, Token::given(value(parser, "token")?))?,
            Long("token-file") => token(&mut options, Token::File(path(parser, "token-file")?))?,
            Long("simulate-workloads") => options.switches.simulate_workloads = true,
            Long("tls") => options.switches.tls = true,
            Long("admin") => options.switches.admin = true,
            other => return Err(unknown(&other, "lariat cluster --help")),
        }
    }
    if options.token.is_none() {
        options.token = environment
            .filter(|text| !text.is_empty())
            .map(Token::given);
    }
    Ok(Command::Cluster(Box::new(options)))
}

fn new(parser: &mut lexopt::Parser) -> Result<Command, UsageError> {
    let (mut name, mut kind, mut path_to, mut lariat) = (None, None, None, None);
    let mut group = DEFAULT_GROUP.to_owned();
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(Command::Print(help::NEW.to_owned())),
            Short('V') | Long("version") => return Ok(Command::Print(help::VERSION.to_owned())),
            Long("kind") => kind = Some(text(parser, "kind")?),
            Long("group") => group = text(parser, "group")?,
            Long("path") => path_to = Some(path(parser, "path")?),
            Long("lariat") => lariat = Some(Source::new(&value(parser, "lariat")?)),
            Value(value) if name.is_none() => name = Some(value.to_string_lossy().into_owned()),
            other => return Err(unknown(&other, "lariat new --help")),
        }
    }
    let name = name.ok_or_else(|| {
        UsageError("the operator has no name; try `lariat new shop-operator`".to_owned())
    })?;
    let name = Name::new(&name).map_err(UsageError)?;
    let kind = kind.map_or_else(|| Ok(name.kind()), |kind| Kind::new(&kind));
    Ok(Command::New(Box::new(scaffold::Options {
        kind: kind.map_err(UsageError)?,
        group: Group::new(&group).map_err(UsageError)?,
        name,
        path: path_to,
        lariat,
    })))
}

fn replay(parser: &mut lexopt::Parser) -> Result<Command, UsageError> {
    let mut options = replay::Options::default();
    let mut file = None;
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(Command::Print(help::REPLAY.to_owned())),
            Long("kind") => options.kind = Some(text(parser, "kind")?),
            Long("key") => options.key = Some(text(parser, "key")?),
            Long("handler") => options.handler = Some(text(parser, "handler")?),
            Long("since") => options.since = Some(when(parser, "since")?),
            Long("until") => options.until = Some(when(parser, "until")?),
            Long("summary") => show(&mut options, Show::Summary)?,
            Long("check") => show(&mut options, Show::Check)?,
            Value(value) if file.is_none() => file = Some(PathBuf::from(value)),
            other => return Err(unknown(&other, "lariat replay --help")),
        }
    }
    options.file = file.ok_or_else(|| {
        UsageError("no file is given; try `lariat replay /var/run/op.flight`".to_owned())
    })?;
    let narrow = options.key.is_some() || options.handler.is_some();
    let narrow = narrow || options.since.is_some() || options.until.is_some();
    if options.show == Show::Check && narrow {
        return Err(UsageError(
            "--check needs all records of a kind; of the filters it takes --kind alone".to_owned(),
        ));
    }
    Ok(Command::Replay(Box::new(options)))
}

fn show(options: &mut replay::Options, show: Show) -> Result<(), UsageError> {
    match std::mem::replace(&mut options.show, show) {
        Show::Timeline => Ok(()),
        before if before == show => Ok(()),
        _ => Err(UsageError(
            "--summary and --check exclude each other".to_owned(),
        )),
    }
}

fn when(parser: &mut lexopt::Parser, option: &str) -> Result<When, UsageError> {
    let when = text(parser, option)?.parse();
    when.map_err(|error| UsageError(format!("--{option}: {error}")))
}

pub(crate) fn unknown(argument: &lexopt::Arg<'_>, help: &str) -> UsageError {
    let argument = match argument {
        Short(letter) => format!("option -{letter}"),
        Long(name) => format!("option --{name}"),
        Value(value) => format!("argument {value:?}"),
    };
    UsageError(format!("unknown {argument}; `{help}` lists what there is"))
}

/// Takes what stands behind an option.
fn value(parser: &mut lexopt::Parser, option: &str) -> Result<OsString, UsageError> {
    let missing = |_| UsageError(format!("--{option} needs a value behind it"));
    parser.value().map_err(missing).and_then(|value| {
        let empty = UsageError(format!("the value of --{option} is empty"));
        if value.is_empty() {
            Err(empty)
        } else {
            Ok(value)
        }
    })
}

pub(crate) fn path(parser: &mut lexopt::Parser, option: &str) -> Result<PathBuf, UsageError> {
    value(parser, option).map(PathBuf::from)
}

pub(crate) fn text(parser: &mut lexopt::Parser, option: &str) -> Result<String, UsageError> {
    let text = value(parser, option)?.into_string();
    text.map_err(|bad| UsageError(format!("the value of --{option} is no text: {bad:?}")))
}

fn address(text: &str) -> Result<SocketAddr, UsageError> {
    SocketAddr::from_str(text).map_err(|_| {
        UsageError(format!(
            "--listen {text:?} is no address; give an IP address and a port, such as {ADDRESS}"
        ))
    })
}

fn load(text: &str) -> Result<Load, UsageError> {
    Load::from_str(text).map_err(|error| UsageError(format!("--load: {error}")))
}

fn token(options: &mut Options, token: Token) -> Result<(), UsageError> {
    match options.token.replace(token) {
        None => Ok(()),
        Some(_) => Err(UsageError(
            "--token and --token-file exclude each other, and are given once".to_owned(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &str) -> Result<Command, UsageError> {
        parse(arguments.split_whitespace().map(OsString::from), None)
    }

    fn options(arguments: &str) -> Options {
        match parsed(arguments) {
            Ok(Command::Cluster(options)) => *options,
            other => panic!("{arguments} is {other:?}"),
        }
    }

    #[test]
    fn options_are_read_in_any_order_and_form() {
        assert_eq!(options("cluster"), Options::default());
        assert_eq!(options("cluster").listen.to_string(), ADDRESS);
        let all = "cluster --seed a.yaml --listen=[::1]:0 --kubeconfig k --data d --seed b --load pods=5 \
            --token t --simulate-workloads --tls --admin";
        let expected = Options {
            listen: "[::1]:0".parse().unwrap(),
            kubeconfig: Some("k".into()),
            data: Some("d".into()),
            seeds: vec!["a.yaml".into(), "b".into()],
            load: Some(Load::pods(5)),
            switches: Switches {
                simulate_workloads: true,
                tls: true,
                admin: true,
            },
            token: Some(Token::given("t".into())),
        };
        assert_eq!(options(all), expected);
    }

    #[test]
    fn a_token_comes_from_an_option_a_file_or_the_environment() {
        let token = |arguments: &str, environment: &str| {
            let arguments = arguments.split_whitespace().map(OsString::from);
            match parse(arguments, Some(environment.into())) {
                Ok(Command::Cluster(options)) => options.token,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(token("cluster", ""), None);
        assert_eq!(token("cluster", "e"), Some(Token::given("e".into())));
        assert_eq!(
            token("cluster --token t", "e"),
            Some(Token::given("t".into()))
        );
        let file = token("cluster --token-file f", "e");
        assert_eq!(file, Some(Token::File("f".into())));
        // It is not shown.
        let given = Token::given("sesame".into());
        assert!(!format!("{given:?}").contains("sesame"));
    }

    #[test]
    fn a_new_operator_has_a_kind_and_a_group() {
        let expected = |kind: &str, group: &str| {
            Ok(Command::New(Box::new(scaffold::Options {
                name: Name::new("shop-operator").unwrap(),
                kind: Kind::new(kind).unwrap(),
                group: Group::new(group).unwrap(),
                path: None,
                lariat: None,
            })))
        };
        assert_eq!(parsed("new shop-operator"), expected("Shop", "demo.dev"));
        let given = parsed("new --kind Foo shop-operator --group a.b");
        assert_eq!(given, expected("Foo", "a.b"));
    }

    #[test]
    fn errors_say_what_is_wrong_and_what_to_do() {
        for (arguments, expected) in [
            (
                "",
                "no command is given; try `lariat cluster`, or `lariat --help`",
            ),
            (
                "serve",
                "there is no command \"serve\"; there are `lariat cluster`, `lariat new`, `lariat query` and `lariat replay`",
            ),
            (
                "--bogus",
                "unknown option --bogus; `lariat --help` lists what there is",
            ),
            (
                "cluster -x",
                "unknown option -x; `lariat cluster --help` lists what there is",
            ),
            (
                "cluster more",
                "unknown argument \"more\"; `lariat cluster --help` lists what there is",
            ),
            ("cluster --listen", "--listen needs a value behind it"),
            ("cluster --seed=", "the value of --seed is empty"),
            (
                "cluster --listen localhost",
                "--listen \"localhost\" is no address; give an IP address and a port, such as 127.0.0.1:8001",
            ),
            (
                "cluster --load pods",
                "--load: \"pods\" is not of the form name=number, such as pods=20000",
            ),
            (
                "cluster --tls=yes",
                "unexpected argument for option '--tls': \"yes\"",
            ),
            (
                "new",
                "the operator has no name; try `lariat new shop-operator`",
            ),
            (
                "new a b",
                "unknown argument \"b\"; `lariat new --help` lists what there is",
            ),
            (
                "new shop --kind=shop",
                "--kind \"shop\" is no kind: letters and digits, a capital first, such as Shop",
            ),
            (
                "cluster --token a --token-file b",
                "--token and --token-file exclude each other, and are given once",
            ),
        ] {
            assert_eq!(
                parsed(arguments),
                Err(UsageError(expected.to_owned())),
                "{arguments}"
            );
        }
    }

    #[test]
    fn help_names_every_option() {
        assert_eq!(
            parsed("--help"),
            Ok(Command::Print(help::LARIAT.to_owned()))
        );
        assert_eq!(
            parsed("cluster --tls --help"),
            Ok(Command::Print(help::CLUSTER.to_owned()))
        );
        let text = format!("lariat {}\n", env!("CARGO_PKG_VERSION"));
        assert_eq!(parsed("-V"), Ok(Command::Print(text)));
        for option in [
            "listen",
            "kubeconfig",
            "data",
            "seed",
            "load",
            "simulate-workloads",
            "tls",
            "token",
            "token-file",
            "admin",
        ] {
            assert!(
                help::CLUSTER.contains(&format!("  --{option} ")),
                "{option}"
            );
        }
        for option in ["kind", "group", "path", "lariat"] {
            assert!(help::NEW.contains(&format!("  --{option} ")), "{option}");
        }
        let widest = help::CLUSTER.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(100), "{widest:?}");
    }
}
