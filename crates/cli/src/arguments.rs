//! The arguments of the command line.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

use crate::{cluster, completions, console, query, scaffold, status, top, why};

const EXAMPLES: &str = "\
Examples:
  lariat cluster --kubeconfig /tmp/lariat.kubeconfig
  lariat new shop-operator
  lariat query pods 'status.phase!=Running' --all-namespaces
  lariat top
  lariat why deployment shop/web
  source <(lariat completions bash)";

/// Tools for Kubernetes controllers: an API server in one process, scaffolds, and a look into running programs.
#[derive(Debug, Parser)]
#[command(
    name = "lariat",
    version,
    propagate_version = true,
    max_term_width = 100,
    after_help = EXAMPLES
)]
struct Lariat {
    #[command(subcommand)]
    command: Command,
}

/// What the user wants.
#[derive(Debug, PartialEq, Subcommand)]
pub(crate) enum Command {
    /// Serve a cluster until Ctrl-C.
    ///
    /// When it serves it prints one line on stdout, `ready URL`; everything else goes to stderr. Ctrl-C and SIGTERM end
    /// it; a second one ends it at once.
    Cluster(Box<cluster::Options>),
    /// Scaffold a new operator.
    ///
    /// It has a program, a kind, manifests, and a test that passes.
    New(Box<scaffold::Options>),
    /// Add a kind, a webhook or a reconciler to a scaffolded project.
    ///
    /// Writes a file of its own, and a line wherever a comment of the project says `lariat:`. Nothing is written if one
    /// of these comments is missing, or the name exists.
    Add(Box<scaffold::AddOptions>),
    /// Print the CRDs of a scaffolded project.
    ///
    /// Runs its program, as `cargo run -- crd`.
    Crd(scaffold::DefinitionOptions),
    /// Filter, sort, page and count the objects of a cluster.
    ///
    /// Reads a kind once, and shows the objects that meet all filters. The cluster is that of KUBECONFIG, of
    /// ~/.kube/config, or of the pod.
    Query(Box<query::Options>),
    /// Watch a running program: its controllers, queues, handlers and errors.
    ///
    /// Asks the console that the program serves.
    Top(Box<top::Options>),
    /// Explain why an object was processed.
    ///
    /// Shows the last runs of a key as a program's console has them: what caused each, what every handler did, and
    /// the runs of other keys that caused it.
    Why(Box<why::Options>),
    /// Show the state of a running program on one screen.
    ///
    /// Asks the console that the program serves. Exits with 0 if the program is ready; with 1 if it is not ready or
    /// does not answer.
    Status(Box<status::Options>),
    /// Print the completion script of a shell.
    Completions(completions::Options),
}

/// Parses the arguments.
///
/// `environment` returns the variables [`cluster::TOKEN`] and [`console::TOKEN`].
///
/// Requested help is an error too.
pub(crate) fn parse(
    arguments: impl IntoIterator<Item = OsString>,
    environment: impl Fn(&str) -> Option<OsString>,
) -> Result<Command, clap::Error> {
    let mut command = Lariat::try_parse_from(arguments)?.command;
    match &mut command {
        Command::Cluster(options) => options.settle_token(environment(cluster::TOKEN)),
        Command::Top(options) => options.settle_token(environment(console::TOKEN)),
        Command::Why(options) => options.settle_token(environment(console::TOKEN)),
        Command::Status(options) => options.settle_token(environment(console::TOKEN)),
        Command::Query(options) => {
            // The query language is not clap's, so its errors are turned into errors about the arguments.
            let settled = options.settle_query();
            settled.map_err(|text| refused("query", text))?;
        }
        Command::New(_) | Command::Add(_) | Command::Crd(_) | Command::Completions(_) => {}
    }
    Ok(command)
}

/// Returns the completion script of a shell.
pub(crate) fn completions(options: completions::Options) -> String {
    completions::script(options, Lariat::command())
}

/// Returns an error about the arguments of a command, with its usage.
fn refused(command: &str, text: String) -> clap::Error {
    let mut lariat = Lariat::command();
    // Commands know their full names from here on.
    lariat.build();
    let command = lariat.find_subcommand_mut(command);
    match command {
        Some(command) => command.error(ErrorKind::ValueValidation, text),
        None => lariat.error(ErrorKind::ValueValidation, text),
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;
    use crate::scaffold::{Group, Kind, Name};
    use crate::token::Token;

    fn parsed(arguments: &str) -> Result<Command, String> {
        let arguments = arguments.split_whitespace().map(OsString::from);
        let all = std::iter::once(OsString::from("lariat")).chain(arguments);
        parse(all, |_| None).map_err(|error| error.to_string())
    }

    #[test]
    fn the_commands_are_consistent() {
        Lariat::command().debug_assert();
    }

    #[test]
    fn the_help_of_every_command_is_readable() {
        let mut lariat = Lariat::command().term_width(100);
        lariat.build();
        insta::assert_snapshot!("lariat", lariat.render_long_help());
        for command in lariat.get_subcommands_mut() {
            let name = command.get_name().to_owned();
            let help = command.render_long_help();
            insta::assert_snapshot!(name, help);
        }
    }

    #[test]
    fn a_token_comes_from_an_option_a_file_or_the_environment() {
        let token = |arguments: &str, environment: &str| {
            let arguments = arguments.split_whitespace().map(OsString::from);
            let variable = |name: &str| (name == cluster::TOKEN).then(|| environment.into());
            match parse(arguments, variable) {
                Ok(Command::Cluster(options)) => options.token,
                other => panic!("{other:?}"),
            }
        };
        let given = |text: &str| Some(Token::Given(text.into()));
        assert_eq!(token("lariat cluster", ""), None);
        assert_eq!(token("lariat cluster", "e"), given("e"));
        assert_eq!(token("lariat cluster --token t", "e"), given("t"));
        let file = token("lariat cluster --token-file f", "e");
        assert_eq!(file, Some(Token::File("f".into())));
        // It is not shown.
        assert!(!format!("{:?}", given("sesame")).contains("sesame"));
    }

    #[test]
    fn a_new_operator_has_a_kind_and_a_group() {
        for (arguments, kind, group) in [
            ("new shop-operator", "Shop", "example.com"),
            ("new --kind Foo shop-operator --group a.b", "Foo", "a.b"),
        ] {
            let Ok(Command::New(options)) = parsed(arguments) else {
                panic!("{arguments}");
            };
            assert_eq!(options.name, Name::new("shop-operator").unwrap());
            assert_eq!(options.kind(), Kind::new(kind).unwrap());
            assert_eq!(options.group, Group::new(group).unwrap());
        }
    }

    #[test]
    fn errors_say_what_is_wrong_and_what_to_do() {
        for (arguments, expected) in [
            ("", "Usage: lariat <COMMAND>"),
            ("serve", "unrecognized subcommand 'serve'"),
            ("clustr", "a similar subcommand exists: 'cluster'"),
            ("--bogus", "unexpected argument '--bogus'"),
            ("cluster --sed x", "a similar argument exists: '--seed'"),
            ("cluster --admn", "a similar argument exists: '--admin'"),
            ("cluster -x", "Usage: lariat cluster [OPTIONS]"),
            ("cluster more", "unexpected argument 'more' found"),
            (
                "cluster --seed",
                "a value is required for '--seed <FILE>' but none was supplied",
            ),
            ("cluster --seed=", "a value is required for '--seed <FILE>'"),
            (
                "cluster --listen localhost",
                "invalid value 'localhost' for '--listen <ADDRESS:PORT>': give an IP address and a port, such as \
                 127.0.0.1:8001",
            ),
            (
                "cluster --load pods",
                "invalid value 'pods' for '--load <WHAT>': \"pods\" is not of the form name=number, such as pods=20000",
            ),
            ("cluster --tls=yes", "unexpected value 'yes' for '--tls'"),
            (
                "cluster --token a --token-file b",
                "'--token <TOKEN>' cannot be used with '--token-file <FILE>'",
            ),
            ("new", "Usage: lariat new"),
            ("new a b", "unexpected argument 'b' found"),
            (
                "new shop --kind=shop",
                "invalid value 'shop' for '--kind <KIND>': letters and digits, a capital first, such as Shop",
            ),
            ("query pods --page 0", "option --page "),
            ("query pods --page 0", "Usage: lariat query"),
            ("completions ash", "[possible values: bash"),
        ] {
            let error = parsed(arguments).unwrap_err();
            assert!(error.contains(expected), "{arguments}: {error}");
        }
    }

    #[test]
    fn no_error_shows_a_token() {
        for arguments in [
            "cluster --token sesame --token-file b",
            "cluster --token sesame --token sesame --bogus",
            "cluster --token= --tls=yes",
            "cluster --tokn sesame",
            "cluster --tokn=sesame",
            "cluster --token sesame --listen localhost",
            "top --token sesame --token-file b",
            "status --token sesame --url ftp://a",
            "why --token sesame pod a/b/c",
        ] {
            let error = parsed(arguments).unwrap_err();
            assert!(!error.contains("sesame"), "{arguments}: {error}");
        }
    }

    #[test]
    fn help_fits_a_terminal_and_names_every_option() {
        let mut lariat = Lariat::command();
        lariat.build();
        for command in lariat.get_subcommands_mut() {
            let short = command.render_help().to_string();
            let long = command.render_long_help().to_string();
            for argument in command.get_arguments().filter_map(|it| it.get_long()) {
                for help in [&short, &long] {
                    assert!(
                        help.contains(&format!("--{argument}")),
                        "{argument}: {help}"
                    );
                }
            }
            for line in short.lines().chain(long.lines()) {
                assert!(line.chars().count() <= 100, "{line}");
            }
        }
    }

    #[test]
    fn every_shell_completes_every_command() {
        for shell in clap_complete::Shell::value_variants() {
            let Ok(Command::Completions(options)) = parsed(&format!("completions {shell}")) else {
                panic!("{shell}");
            };
            let script = completions(options);
            for word in [
                "simulate-workloads",
                "query",
                "page-size",
                "why",
                "token-file",
            ] {
                assert!(script.contains(word), "{shell}: {word}");
            }
        }
    }
}
