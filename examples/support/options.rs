//! The command line of an example.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use fastrand::Rng;
use lexopt::prelude::*;

use super::About;

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
        let mut options = Self::default();
        for flag in about.flags {
            options.values.insert(flag.name, flag.default.to_owned());
        }
        let mut parser = lexopt::Parser::from_env();
        while let Some(argument) = parser.next()? {
            match argument {
                Long("watch") => options.watch = true,
                Long("kubeconfig") => options.kubeconfig = Some(parser.value()?.into()),
                Long("help") | Short('h') => {
                    about.print_usage();
                    return Ok(None);
                }
                Long(name) => {
                    let flag = about.flags.iter().find(|flag| flag.name == name);
                    let flag = flag.ok_or_else(|| {
                        anyhow!("unknown option \"--{name}\"; --help lists all options")
                    })?;
                    let value = match flag.is_switch() {
                        true => "true".to_owned(),
                        false => parser.value()?.string()?,
                    };
                    options.values.insert(flag.name, value);
                }
                other => return Err(other.unexpected().into()),
            }
        }
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

    /// Returns a random generator with the given seed, or a random seed for `random`.
    ///
    /// # Errors
    ///
    /// The value is neither.
    pub fn dice(&self, name: &str) -> Result<Rng> {
        match &*self.value::<String>(name)? {
            "random" => Ok(Rng::new()),
            _ => Ok(Rng::with_seed(self.value(name)?)),
        }
    }
}

impl Flag {
    fn is_switch(&self) -> bool {
        self.default == "false"
    }
}

impl About {
    fn print_usage(&self) {
        println!("cargo run --example {} -- [OPTIONS]\n", self.name);
        println!("{}\n", self.what);
        let mut lines = vec![
            (
                "--kubeconfig PATH".to_owned(),
                "run on this cluster instead of the embedded one (or KUBECONFIG)".to_owned(),
            ),
            (
                "--watch".to_owned(),
                "run without a story until Ctrl-C".to_owned(),
            ),
        ];
        for flag in self.flags {
            let (name, help, default) = (flag.name, flag.help, flag.default);
            lines.push(match flag.is_switch() {
                true => (format!("--{name}"), help.to_owned()),
                false => (
                    format!("--{name} VALUE"),
                    format!("{help} (default {default})"),
                ),
            });
        }
        for (option, help) in lines {
            println!("  {option:<24}{help}");
        }
    }
}
