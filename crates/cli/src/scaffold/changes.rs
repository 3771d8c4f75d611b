//! Changes of a project's files, which are written all together or not at all.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

/// New and changed files of a project, before they are written.
pub(super) struct Changes {
    folder: PathBuf,
    /// By the path within the project, with slashes.
    files: BTreeMap<String, String>,
}

impl Changes {
    /// Begins changes of the project in a folder, which may be empty.
    pub(super) fn of(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            files: BTreeMap::new(),
        }
    }

    /// Returns the text of a file with the changes so far; `None` without a file.
    pub(super) fn text(&self, path: &str) -> Result<Option<String>> {
        if let Some(text) = self.files.get(path) {
            return Ok(Some(text.clone()));
        }
        let path = self.folder.join(path);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    /// Adds a file.
    pub(super) fn create(&mut self, path: &str, text: String) -> Result<()> {
        let is_new = !self.files.contains_key(path) && !self.folder.join(path).exists();
        ensure!(is_new, "{path} exists already; nothing was written");
        self.files.insert(path.to_owned(), text);
        Ok(())
    }

    /// Inserts lines above the comment `lariat: MARKER` of a file, indented as it is.
    pub(super) fn insert(&mut self, path: &str, marker: &str, lines: &str) -> Result<()> {
        let text = self.text(path)?;
        let text = text.with_context(|| {
            format!("there is no {path}, in which the addition is named; nothing was written")
        })?;
        let all: Vec<&str> = text.split_inclusive('\n').collect();
        let Some(at) = all.iter().position(|line| is_marker(line, marker)) else {
            let sign = if path.ends_with(".rs") { "//" } else { "#" };
            bail!(
                "{path} has no line `{sign} lariat: {marker}`, above which the addition is named; put it back; \
                 nothing was written"
            );
        };
        let blank = all[at].len() - all[at].trim_start().len();
        let indent = &all[at][..blank];
        let inserted: String = lines
            .lines()
            .map(|line| format!("{indent}{line}\n"))
            .collect();
        let at = sorted(&all[..at], &inserted);
        let changed = [&all[..at].concat(), &*inserted, &all[at..].concat()].concat();
        self.files.insert(path.to_owned(), changed);
        Ok(())
    }

    /// Replaces a text of a file, which must be there once.
    pub(super) fn replace(&mut self, path: &str, old: &str, new: &str) -> Result<()> {
        let text = self.text(path)?;
        let text = text.with_context(|| {
            format!("there is no {path}, in which the addition is named; nothing was written")
        })?;
        ensure!(
            text.matches(old).count() == 1,
            "{path} does not have these lines once, which the addition changes; put them back; nothing was \
             written:\n{old}"
        );
        self.files.insert(path.to_owned(), text.replace(old, new));
        Ok(())
    }

    /// Returns the paths of the new files of Rust.
    pub(super) fn new_sources(&self) -> Vec<String> {
        let is_new = |path: &&String| path.ends_with(".rs") && !self.folder.join(path).exists();
        self.files.keys().filter(is_new).cloned().collect()
    }

    /// Writes everything, and returns the paths.
    pub(super) fn write(self) -> Result<Vec<String>> {
        for (path, text) in &self.files {
            write(&self.folder.join(path), text)?;
        }
        Ok(self.files.into_keys().collect())
    }
}

fn is_marker(line: &str, marker: &str) -> bool {
    let line = line.trim();
    let comment = line.strip_prefix("//").or_else(|| line.strip_prefix('#'));
    comment.is_some_and(|comment| comment.trim() == format!("lariat: {marker}"))
}

/// Returns where a line goes above a marker: among modules in their order, as rustfmt has them.
fn sorted(above: &[&str], inserted: &str) -> usize {
    const MODULE: &str = "pub mod ";
    if !inserted.starts_with(MODULE) {
        return above.len();
    }
    let modules = above.iter().rev().take_while(|it| it.starts_with(MODULE));
    let greater = modules.take_while(|line| ***line > *inserted);
    above.len() - greater.count()
}

fn write(path: &Path, text: &str) -> Result<()> {
    let parent = path.parent().unwrap_or(Path::new(""));
    let written = fs::create_dir_all(parent).and_then(|()| fs::write(path, text));
    written.with_context(|| format!("cannot write {}", path.display()))?;
    make_executable(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Makes a script executable.
#[cfg(unix)]
fn make_executable(path: &Path, text: &str) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    if !text.starts_with("#!") {
        return Ok(());
    }
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn make_executable(_: &Path, _: &str) -> std::io::Result<()> {
    Ok(())
}
