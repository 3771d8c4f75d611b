//! The options of `lariat cluster`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::ValueHint;
use clap::builder::{OsStringValueParser, TypedValueParser};
use lariat_cluster::Load;

use super::bounds::Bounds;
use super::console::ConsoleOptions;
use crate::token::Token;

/// Where a cluster listens by default.
const ADDRESS: &str = "127.0.0.1:8001";

/// The environment variable with the token.
///
/// Other users of the machine cannot see it there.
pub(crate) const TOKEN: &str = "LARIAT_TOKEN";

const STRANGERS: &str = "\
Without a token whoever reaches the address may do everything. Web pages are kept out: requests with an Origin are \
refused, and on a loopback address those for other hosts than addresses and localhost.

Examples:
  lariat cluster --listen 127.0.0.1:0 --kubeconfig kubeconfig --seed manifests/
  kubectl --kubeconfig kubeconfig get namespaces
  lariat cluster --console 127.0.0.1:9091";

/// What the cluster is like.
#[derive(Debug, PartialEq, clap::Args)]
#[command(args_override_self = true, after_help = STRANGERS)]
pub(crate) struct Options {
    /// The address to serve on; port 0 takes a free port.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = ADDRESS, value_parser = address, help_heading = "Address")]
    pub(crate) listen: SocketAddr,
    /// Add a context `lariat` to this kubeconfig.
    ///
    /// It becomes the current context, as with kind. At the end it is removed; the file then has no current context.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Address")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Keep the objects in this file, and start with its contents.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Content")]
    pub(crate) data: Option<PathBuf>,
    /// Create the objects in a YAML or JSON file or folder; may be repeated.
    ///
    /// All such files in a folder are read. CRDs are created first, then namespaces, then the rest; existing objects
    /// are updated.
    #[arg(long = "seed", value_name = "FILE", value_hint = ValueHint::AnyPath, help_heading = "Content")]
    pub(crate) seeds: Vec<PathBuf>,
    /// Fill the cluster with generated objects, such as pods=20000.
    ///
    /// With all keys: pods=500,configmaps=100,nodes=20,namespaces=5,seed=7.
    #[arg(long, value_name = "WHAT", help_heading = "Content")]
    pub(crate) load: Option<Load>,
    #[command(flatten)]
    pub(crate) switches: Switches,
    #[command(flatten)]
    pub(super) bounds: Bounds,
    #[command(flatten)]
    pub(crate) console: ConsoleOptions,
    /// Require the bearer token in this file, and authorize other users by RBAC.
    ///
    /// Clients with the token may do everything; kubectl shows its token only over HTTPS (--tls).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Access")]
    token_file: Option<PathBuf>,
    /// Require this bearer token; the environment variable LARIAT_TOKEN does the same.
    ///
    /// Other users of the machine see options in the list of processes.
    #[arg(
        long,
        value_name = "TOKEN",
        conflicts_with = "token_file",
        help_heading = "Access"
    )]
    #[arg(value_parser = OsStringValueParser::new().try_map(Token::option))]
    pub(crate) token: Option<Token>,
}

/// The flags.
#[derive(Debug, Default, PartialEq, clap::Args)]
pub(crate) struct Switches {
    /// Simulate nodes and workloads, so that Deployments, Jobs and others run.
    #[arg(long, help_heading = "Content")]
    pub(crate) simulate_workloads: bool,
    /// Serve HTTPS with a generated certificate.
    #[arg(long, help_heading = "Address")]
    pub(crate) tls: bool,
    /// Serve the cluster's admin API: faults, time, the journal of requests.
    #[arg(long, help_heading = "Access")]
    pub(crate) admin: bool,
}

impl Options {
    /// Takes the token from a file or the environment, if none is given.
    pub(crate) fn settle_token(&mut self, environment: Option<OsString>) {
        self.token = Token::or_else(self.token.take(), self.token_file.take(), environment);
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        // The error of the standard library does not say which form is expected.
        .map_err(|_| format!("give an IP address and a port, such as {ADDRESS}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::parsed;

    #[test]
    fn options_are_read_in_any_order_and_form() {
        let plain: Options = parsed(&[]).unwrap();
        assert_eq!(plain.listen.to_string(), ADDRESS);
        let all = "--seed a.yaml --listen=[::1]:0 --kubeconfig k --data d --seed b --load pods=5 \
            --token t --simulate-workloads --tls --admin \
            --console [::1]:1 --console-token-file c";
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
            bounds: Bounds::default(),
            console: ConsoleOptions {
                console: Some("[::1]:1".parse().unwrap()),
                console_token_file: Some("c".into()),
            },
            token_file: None,
            token: Some(Token::Given("t".into())),
        };
        let words: Vec<&str> = all.split_whitespace().collect();
        assert_eq!(parsed::<Options>(&words).unwrap(), expected);
    }

    #[test]
    fn of_a_value_that_is_given_twice_the_last_counts() {
        let options: Options = parsed(&["--listen", "[::1]:1", "--listen", "[::1]:2"]).unwrap();
        assert_eq!(options.listen.port(), 2);
    }
}
