//! `lariat add`: adds a kind, a reconciler or a webhook to a project.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Subcommand, ValueHint};

use super::additions::Additions;
use super::changes::Changes;
use super::existing::Existing;
use super::names::{Kind, Name};
use super::write::format;
use crate::quote::shell;

const EXAMPLE: &str = "\
Example:
  lariat add kind Fox
  lariat add reconciler fox
  lariat add webhook Fox";

/// What is added, and where.
#[derive(Debug, PartialEq, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct AddOptions {
    #[command(subcommand)]
    what: What,
    /// The project's folder.
    #[arg(long, value_name = "FOLDER", default_value = ".", global = true)]
    #[arg(value_hint = ValueHint::DirPath)]
    path: PathBuf,
}

/// What is added.
#[derive(Debug, PartialEq, Subcommand)]
enum What {
    /// Add a kind, in the project's API group.
    Kind {
        /// The kind, such as Fox.
        #[arg(value_parser = Kind::new)]
        kind: Kind,
    },
    /// Add a reconciler of a kind.
    Reconciler {
        /// Its name, such as fox.
        #[arg(value_parser = Name::new)]
        name: Name,
        /// The kind of the project it is for [default: from NAME: Fox for fox].
        #[arg(long, value_name = "KIND", value_parser = Kind::new)]
        kind: Option<Kind>,
    },
    /// Add a defaulting and a validating webhook of a kind.
    Webhook {
        /// The kind of the project they are for, such as Fox.
        #[arg(value_parser = Kind::new)]
        kind: Kind,
    },
}

/// Writes what is added, and returns the next steps.
pub(crate) fn run(options: &AddOptions) -> Result<String> {
    let folder = &options.path;
    let existing = Existing::read(folder)?;
    let mut changes = Changes::of(folder);
    let mut additions = Additions {
        name: &existing.name,
        group: &existing.group,
        changes: &mut changes,
    };
    match &options.what {
        What::Kind { kind } => {
            existing.check_new_kind(kind)?;
            additions.kind(kind)?
        }
        What::Reconciler { name, kind } => {
            existing.check_new_reconciler(name)?;
            let kind = kind.clone().unwrap_or_else(|| name.kind());
            additions.reconciler(name, &kind, existing.module(&kind)?)?
        }
        What::Webhook { kind } => additions.webhook(kind, existing.module(kind)?)?,
    }
    let new = changes.new_sources();
    let written = changes.write()?;
    // What was there keeps its form.
    format(folder, &new);
    Ok(next_steps(folder, &written))
}

fn next_steps(folder: &Path, written: &[String]) -> String {
    let written: String = written.iter().map(|path| format!("  {path}\n")).collect();
    let enter = match folder.to_str() {
        Some(".") => String::new(),
        _ => format!("  cd {}\n", shell(folder)),
    };
    format!(
        "written:\n{written}\nThen print the manifests again, and test:\n\n{enter}\
         \x20 cargo run -- crd > deploy/crd.yaml\n\
         \x20 cargo run -- rbac | tee deploy/rbac.yaml > deploy/chart/files/rbac.yaml\n\
         \x20 cargo test\n"
    )
}
