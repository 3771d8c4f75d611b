//! A project that is there: its names, and which kinds it has.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use super::names::{Group, Kind, Name};

/// A project that `lariat new` wrote.
pub(super) struct Existing {
    pub(super) name: Name,
    pub(super) group: Group,
    /// The files of `src/`, by the names of the modules.
    modules: Vec<(String, String)>,
}

impl Existing {
    /// Reads the project in a folder.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let (name, group) = names(folder)?;
        let source = folder.join("src");
        let read = || -> std::io::Result<Vec<(String, String)>> {
            let entries: std::io::Result<Vec<_>> = fs::read_dir(&source)?.collect();
            let paths: Vec<PathBuf> = entries?.into_iter().map(|entry| entry.path()).collect();
            let files = paths.iter().filter(|path| has_rust(path));
            let modules = files.map(|path| {
                let stem = path.file_stem().unwrap_or_default();
                Ok((
                    stem.to_string_lossy().into_owned(),
                    fs::read_to_string(path)?,
                ))
            });
            modules.collect()
        };
        let modules = read().with_context(|| format!("cannot read {}", source.display()))?;
        Ok(Self {
            name,
            group,
            modules,
        })
    }

    /// Returns the module of a kind.
    pub(super) fn module(&self, kind: &Kind) -> Result<&str> {
        let module = self.having(&format!("kind = \"{}\"", kind.as_str()));
        module.with_context(|| {
            let kind = kind.as_str();
            format!("no file of src/ has the kind {kind}; add it by `lariat add kind {kind}`, or name another")
        })
    }

    /// Checks that a kind is new, and its resource too.
    pub(super) fn check_new_kind(&self, kind: &Kind) -> Result<()> {
        let (name, plural) = (kind.as_str(), kind.plural());
        for (what, field) in [(name, "kind"), (&*plural, "plural")] {
            let module = self.having(&format!("{field} = \"{what}\""));
            if let Some(module) = module {
                bail!("{what} exists already, in src/{module}.rs; nothing was written");
            }
        }
        Ok(())
    }

    /// Checks that a reconciler's name is new.
    pub(super) fn check_new_reconciler(&self, name: &Name) -> Result<()> {
        let name = name.as_str();
        match self.having(&format!(".reconciler(\"{name}\"")) {
            Some(module) => {
                bail!(
                    "the reconciler {name} exists already, in src/{module}.rs; nothing was written"
                )
            }
            None => Ok(()),
        }
    }

    /// Returns the module whose file has a text.
    fn having(&self, wanted: &str) -> Option<&str> {
        let mut modules = self.modules.iter();
        let (module, _) = modules.find(|(_, text)| text.contains(wanted))?;
        Some(module)
    }
}

fn has_rust(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "rs") && path.is_file()
}

/// Checks for a project of `lariat new`; returns its name and group.
pub(super) fn names(folder: &Path) -> Result<(Name, Group)> {
    let path = folder.join("Cargo.toml");
    let text = fs::read_to_string(&path).with_context(|| {
        let (path, folder) = (path.display(), folder.display());
        format!("cannot read {path}; {folder} has to be a project of `lariat new`: run this in one, or name it by --path")
    })?;
    let value = |section, key| {
        let value = value(&text, section, key);
        value.with_context(|| {
            let path = path.display();
            format!("{path} has no `{key}` below {section}, which `lariat new` writes: docs/upgrading.md says what to add")
        })
    };
    let name = value("[package]", "name")?;
    let group = value("[package.metadata.lariat]", "group")?;
    let named = |error| format!("{}: {error}", path.display());
    let name = Name::new(name)
        .map_err(|error| anyhow::anyhow!(named(format!("the name {name}: {error}"))))?;
    let group = Group::new(group)
        .map_err(|error| anyhow::anyhow!(named(format!("the group {group}: {error}"))))?;
    ensure!(
        folder.join("src/lib.rs").is_file(),
        "{} has no src/lib.rs",
        folder.display()
    );
    Ok((name, group))
}

/// Returns the text of a key in a section of TOML, as `lariat new` writes both.
fn value<'a>(text: &'a str, section: &str, key: &str) -> Option<&'a str> {
    let lines = text.lines().map(str::trim);
    let section = lines.skip_while(|line| *line != section).skip(1);
    let mut lines = section.take_while(|line| !line.starts_with('['));
    lines.find_map(|line| {
        let value = line.strip_prefix(key)?.trim_start().strip_prefix('=')?;
        value.trim().strip_prefix('"')?.split('"').next()
    })
}
