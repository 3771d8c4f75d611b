//! The options of `lariat why`.

use std::ffi::OsString;

use clap::builder::NonEmptyStringValueParser;
use lariat_core::ObjectKey;

use crate::console::{Output, Source};

const EXAMPLES: &str = "\
Examples:
  lariat why deployment shop/web
  lariat why shops.demo.dev default/mine --follow
  lariat why node node-1 --pod shops/shop-operator-0:9090 --output json";

/// The key, and how much of its history to show.
#[derive(Debug, PartialEq, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// A kind as kubectl takes it: deployment, deploy, deployments.apps.
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub(super) kind: String,
    /// The object: namespace/name, or a name if it has no namespace.
    #[arg(value_name = "NS/NAME", value_parser = key)]
    pub(super) key: ObjectKey,
    /// The context id of the factory, if the program has several.
    #[arg(long, value_name = "ID", help_heading = "History")]
    pub(super) factory: Option<String>,
    /// The number of runs to show, newest first.
    #[arg(long, value_name = "N", default_value = "5", help_heading = "History")]
    pub(super) runs: usize,
    /// The number of causing runs to follow back.
    #[arg(long, value_name = "N", default_value = "3", help_heading = "History")]
    #[arg(value_parser = clap::value_parser!(u8).range(..=20))]
    pub(super) depth: u8,
    /// Show new runs as they happen, until Ctrl-C.
    #[arg(short, long, help_heading = "History")]
    pub(super) follow: bool,
    #[command(flatten)]
    pub(super) source: Source,
    /// The output format; json is one object, with --follow one run per line.
    #[arg(short, long, value_name = "FORM", value_enum, default_value_t = Output::Text, help_heading = "Output")]
    pub(super) output: Output,
}

impl Options {
    /// Takes the token of the environment, if no other is given.
    pub(crate) fn settle_token(&mut self, environment: Option<OsString>) {
        self.source.settle_token(environment);
    }
}

fn key(text: &str) -> Result<ObjectKey, &'static str> {
    let wrong =
        "give namespace/name, such as shop/web, or the name of an object without a namespace";
    // The console separates namespace and name by a `~` in its paths.
    let is_name = |part: &str| !part.is_empty() && !part.contains(['/', '~']);
    match text.split_once('/') {
        Some((namespace, name)) if is_name(namespace) && is_name(name) => {
            Ok(ObjectKey::namespaced(namespace, name))
        }
        None if is_name(text) => Ok(ObjectKey::cluster(text)),
        _ => Err(wrong),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::parsed;

    #[test]
    fn a_key_has_a_namespace_or_none() {
        assert_eq!(key("shop/web"), Ok(ObjectKey::namespaced("shop", "web")));
        assert_eq!(key("node-1"), Ok(ObjectKey::cluster("node-1")));
        for bad in ["", "/a", "a/", "a/b/c", "a~b"] {
            assert!(key(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (arguments, expected) in [
            (&["pod"][..], "<NS/NAME>"),
            (&["pod", "a/b/c"], "shop/web"),
            (&["pod", "a/b", "--depth", "99"], "--depth"),
            (
                &["pod", "a/b", "-o", "yaml"],
                "[possible values: text, json]",
            ),
        ] {
            let error = parsed::<Options>(arguments).unwrap_err().to_string();
            assert!(error.contains(expected), "{arguments:?}: {error}");
        }
    }
}
