//! A new project, written.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::additions::Additions;
use super::changes::Changes;
use super::options::Options;
use super::permissions;
use super::project::{PERMISSIONS, Project};
use super::source::Source;

/// Writes the project, and returns the next steps.
pub(crate) fn run(options: &Options) -> Result<String> {
    let given = options.path.clone();
    let folder = given.unwrap_or_else(|| PathBuf::from(options.name.as_str()));
    let source = options.lariat.clone().map_or_else(Source::default, Ok)?;
    source.check()?;
    let permissions = permissions::manifests(options)?;
    make(&folder)?;
    let project = Project::new(options, &source.seen_from(&folder)?);
    let mut changes = Changes::of(&folder);
    for path in PERMISSIONS {
        changes.create(path, permissions.clone())?;
    }
    for (path, text) in project.files() {
        changes.create(path, text)?;
    }
    if options.webhook {
        let mut additions = Additions {
            name: &options.name,
            group: &options.group,
            changes: &mut changes,
        };
        additions.webhook(&options.kind(), "api")?;
    }
    let sources = changes.new_sources();
    changes.write()?;
    format(&folder, &sources);
    Ok(project.next_steps(&folder))
}

/// Formats the files with rustfmt, if it is installed.
pub(super) fn format(folder: &Path, files: &[String]) {
    let mut rustfmt = Command::new("rustfmt");
    rustfmt
        .args(["--edition", "2024"])
        .args(files.iter().map(|file| folder.join(file)));
    let _ = rustfmt.stdout(Stdio::null()).stderr(Stdio::null()).status();
}

/// Makes a folder; one that is there has to be empty.
fn make(folder: &Path) -> Result<()> {
    let entries = fs::read_dir(folder).map(Iterator::count);
    match entries {
        Ok(0) => Ok(()),
        Ok(_) => bail!(
            "{} is not empty; give another folder with --path",
            folder.display()
        ),
        Err(_) => fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the folder {}", folder.display())),
    }
}
