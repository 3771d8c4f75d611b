//! The options that say which console to ask, and how.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{ValueEnum, ValueHint};
use http::Uri;

use crate::token::Token;

/// The address of a console by default.
const ADDRESS: &str = "http://127.0.0.1:9090";

/// The environment variable with the token of a console.
pub(crate) const TOKEN: &str = "LARIAT_CONSOLE_TOKEN";

/// How to write an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    Text,
    Json,
}

/// The console to ask.
#[derive(Debug, PartialEq, clap::Args)]
#[command(next_help_heading = "Console")]
pub(crate) struct Source {
    /// The address of the console.
    #[arg(long, value_name = "URL", default_value = ADDRESS, value_parser = url, value_hint = ValueHint::Url)]
    pub(super) url: Uri,
    /// Ask the console of a pod, through the API server.
    ///
    /// The cluster comes from KUBECONFIG, ~/.kube/config, or the pod that this runs in; the user needs the
    /// permission to get pods/proxy. The port is a number or a name. The console must listen on the pod's address.
    #[arg(long, value_name = "NS/POD:PORT", value_parser = pod, conflicts_with = "url")]
    pub(super) pod: Option<Pod>,
    /// The kubeconfig of the pod's cluster.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "pod")]
    pub(super) kubeconfig: Option<PathBuf>,
    /// The file with the token that the console requires.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    token_file: Option<PathBuf>,
    /// The token; the environment variable LARIAT_CONSOLE_TOKEN does the same.
    ///
    /// Other users of the machine see options in the list of processes.
    #[arg(long, value_name = "TOKEN", conflicts_with = "token_file")]
    #[arg(value_parser = OsStringValueParser::new().try_map(Token::option))]
    pub(super) token: Option<Token>,
    /// The timeout for an answer.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub(super) timeout: Duration,
}

/// A port of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pod {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) port: String,
}

impl Source {
    /// Takes the token from a file or the environment, if none is given.
    pub(crate) fn settle_token(&mut self, environment: Option<OsString>) {
        self.token = Token::or_else(self.token.take(), self.token_file.take(), environment);
    }
}

/// Reads an address; without a scheme it is HTTP.
fn url(text: &str) -> Result<Uri, String> {
    let whole = if text.contains("://") {
        text.to_owned()
    } else {
        format!("http://{text}")
    };
    let wrong = || format!("give an address such as {ADDRESS}");
    let uri: Uri = whole.parse().map_err(|_| wrong())?;
    let authority = uri.authority().ok_or_else(wrong)?;
    // The client would ignore the credentials, and other users see them in the list of processes.
    if authority.as_str().contains('@') {
        return Err("the address has a user; give a token with --token-file instead".to_owned());
    }
    let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
    if !is_http || authority.host().is_empty() || uri.query().is_some() {
        return Err(wrong());
    }
    Ok(uri)
}

/// Reads `namespace/pod:port`.
fn pod(text: &str) -> Result<Pod, &'static str> {
    let wrong = "give a pod and its port, such as shops/shop-operator-0:9090";
    let (namespace, rest) = text.split_once('/').ok_or(wrong)?;
    let (name, port) = rest.split_once(':').ok_or(wrong)?;
    // The parts are put into a path of the API server, so they must not contain anything that ends a segment.
    let is_name = |part: &str| {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
        !part.is_empty() && part.chars().all(is_allowed)
    };
    if ![namespace, name, port].into_iter().all(is_name) {
        return Err(wrong);
    }
    Ok(Pod {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        port: port.to_owned(),
    })
}

fn seconds(text: &str) -> Result<Duration, &'static str> {
    match text.parse() {
        Ok(seconds) if seconds > 0 => Ok(Duration::from_secs(seconds)),
        _ => Err("it is no number of seconds above 0"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::parsed;

    #[test]
    fn an_address_needs_no_scheme() {
        for (given, expected) in [
            ("localhost:9090", "http://localhost:9090/"),
            ("http://a.b:1/console", "http://a.b:1/console"),
            ("https://[::1]:9090", "https://[::1]:9090/"),
        ] {
            assert_eq!(url(given).unwrap().to_string(), expected);
        }
        let source: Source = parsed(&[]).unwrap();
        assert_eq!(source.url, ADDRESS);
    }

    #[test]
    fn a_pod_has_a_namespace_and_a_port() {
        let found = pod("shops/shop-operator-0:metrics").unwrap();
        let parts = [&found.namespace[..], &found.name, &found.port];
        assert_eq!(parts, ["shops", "shop-operator-0", "metrics"]);
        // Nothing that would be another path of the API server.
        for bad in [
            "a",
            "a/b",
            "a:1",
            "a/b:",
            "/b:1",
            "a/b/c:1",
            "a/..%2f:1",
            "a/b:1?x",
        ] {
            assert!(pod(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_named_and_no_error_shows_a_token() {
        for (arguments, expected) in [
            (&["--url", "ftp://a"][..], "give an address such as"),
            (&["--url", "http://me:sesame@a"], "--token-file"),
            (
                &["--url", "http://a/?token=sesame"],
                "give an address such as",
            ),
            (&["--url", "a:1", "--pod", "a/b:1"], "cannot be used with"),
            (&["--pod", "shop"], "shops/shop-operator-0:9090"),
            (&["--kubeconfig", "k"], "--pod <NS/POD:PORT>"),
            (&["--timeout", "0"], "--timeout"),
            (&["--token", ""], "it is empty"),
            (
                &["--token", "sesame", "--token-file", "f"],
                "cannot be used with",
            ),
        ] {
            let error = parsed::<Source>(arguments).unwrap_err().to_string();
            assert!(error.contains(expected), "{arguments:?}: {error}");
            // clap quotes the value of `--url`, which the user must have typed as one.
            let is_quoted = arguments[0] == "--url";
            assert!(
                is_quoted || !error.contains("sesame"),
                "{arguments:?}: {error}"
            );
        }
    }
}
