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

/// An option of an example's own, with a value.
#[derive(Debug, Clone, Copy)]
pub struct Flag {
    /// Its name, without dashes.
    pub name: &'static str,
    /// Its value when it is not given; with `false` it is a switch, which takes no value.
    pub default: &'static str,
    /// What it is about.
    pub help: &'static str,
}

/// What the user wants.
#[derive(Debug, Default)]
pub struct Options {
    /// The cluster to run on; the embedded one without it.
    pub kubeconfig: Option<PathBuf>,
    /// Whether to go on until Ctrl-C, with nothing happening by itself.
    pub watch: bool,
    values: BTreeMap<&'static str, String>,
}

impl Options {
    /// Reads the arguments of the program; `None` if help was asked for, and printed.
    ///
    /// # Errors
    ///
    /// An argument is not one of the example's, or its value makes no sense to it.
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
                        anyhow!("unknown option \"--{name}\"; --help lists what there is")
                    })?;
                    let value = if flag.is_switch() {
                        "true".to_owned()
                    } else {
                        parser.value()?.string()?
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
    /// What was given is no such value.
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
    /// What was given is no time that can be waited for.
    pub fn seconds(&self, name: &str) -> Result<Duration> {
        let seconds: f64 = self.value(name)?;
        Duration::try_from_secs_f64(seconds)
            .map_err(|error| anyhow!("--{name} cannot be \"{seconds}\": {error}"))
    }

    /// Returns dice: those that the number decides which was given, or any if it is `random`.
    ///
    /// # Errors
    ///
    /// What was given is neither.
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
                "let nothing happen by itself, and go on until Ctrl-C".to_owned(),
            ),
        ];
        for flag in self.flags {
            let (name, help, default) = (flag.name, flag.help, flag.default);
            lines.push(if flag.is_switch() {
                (format!("--{name}"), help.to_owned())
            } else {
                (
                    format!("--{name} VALUE"),
                    format!("{help} (default {default})"),
                )
            });
        }
        for (option, help) in lines {
            println!("  {option:<24}{help}");
        }
    }
}
