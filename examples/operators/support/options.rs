//! The command line of an example.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use clap::{Arg, ArgAction, Command, value_parser};

use super::{About, arguments};

/// An example's own option, with a value.
#[derive(Debug, Clone, Copy)]
pub struct Flag {
    /// Its name, without dashes.
    pub name: &'static str,
    /// The default value; with `false` the option is a switch without a value.
    pub default: &'static str,
    /// The help text.
    pub help: &'static str,
}

/// The parsed options.
#[derive(Debug, Default)]
pub struct Options {
    /// The kubeconfig of the cluster to run on; none for the embedded cluster.
    pub kubeconfig: Option<PathBuf>,
    /// Whether to run until Ctrl-C without a story.
    pub watch: bool,
    values: BTreeMap<&'static str, String>,
}

impl Options {
    /// Parses the arguments of the program; `None` if help was requested, and printed.
    ///
    /// # Errors
    ///
    /// An argument is unknown, or its value is invalid.
    pub fn parse(about: &About) -> Result<Option<Self>> {
        let Some(matches) = arguments::read(about.command().try_get_matches())? else {
            return Ok(None);
        };
        let value = |flag: &Flag| {
            if flag.is_switch() {
                return matches.get_flag(flag.name).to_string();
            }
            let value: Option<&String> = matches.get_one(flag.name);
            value.cloned().unwrap_or_default()
        };
        let options = Self {
            kubeconfig: matches.get_one("kubeconfig").cloned(),
            watch: matches.get_flag("watch"),
            values: about
                .flags
                .iter()
                .map(|flag| (flag.name, value(flag)))
                .collect(),
        };
        (about.check)(&options)?;
        Ok(Some(options))
    }

    /// Returns the value of an option of the example's own.
    ///
    /// # Errors
    ///
    /// The value is invalid.
    pub fn value<T>(&self, name: &str) -> Result<T>
    where
        T: FromStr<Err: Display>,
    {
        let text = self.values.get(name);
        let text = text.with_context(|| format!("the example has no option --{name}"))?;
        text.parse()
            .map_err(|error| anyhow!("--{name} cannot be {text:?}: {error}"))
    }

    /// Returns the value of an option that is a number of seconds, maybe with a fraction.
    ///
    /// # Errors
    ///
    /// The value is not a valid duration.
    pub fn seconds(&self, name: &str) -> Result<Duration> {
        let seconds: f64 = self.value(name)?;
        Duration::try_from_secs_f64(seconds)
            .map_err(|error| anyhow!("--{name} cannot be \"{seconds}\": {error}"))
    }
}

impl Flag {
    fn is_switch(&self) -> bool {
        self.default == "false"
    }
}

impl About {
    fn command(&self) -> Command {
        let own = self.flags.iter().map(|flag| {
            let argument = Arg::new(flag.name).long(flag.name).help(flag.help);
            if flag.is_switch() {
                argument.action(ArgAction::SetTrue)
            } else {
                argument
                    .value_name("VALUE")
                    .default_value(flag.default)
                    // "--delay -1" is a value the example refuses with its reason, not an option.
                    .allow_negative_numbers(true)
            }
        });
        let kubeconfig = Arg::new("kubeconfig").long("kubeconfig").value_name("PATH");
        let kubeconfig = kubeconfig.value_parser(value_parser!(PathBuf));
        let watch = Arg::new("watch").long("watch").action(ArgAction::SetTrue);
        Command::new(self.name)
            .bin_name(format!(
                "cargo run -p lariat-operators --example {} --",
                self.name
            ))
            .about(self.what)
            .arg(kubeconfig.help("run on this cluster instead of the embedded one (or KUBECONFIG)"))
            .arg(watch.help("run without a story until Ctrl-C"))
            .args(own)
            .max_term_width(100)
            .args_override_self(true)
    }
}
