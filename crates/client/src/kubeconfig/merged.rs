//! Several kubeconfig files as one.

use std::io;
use std::path::{Path, PathBuf};

use super::document::{Document, Unusable};
use super::entry::Entry;

/// Kubeconfig files, the first one first: it takes precedence.
#[derive(Debug)]
pub(crate) struct Kubeconfig {
    documents: Vec<Document>,
}

/// The lists of a kubeconfig, and the member that has the content of their entries.
#[derive(Debug, Clone, Copy)]
pub(super) enum List {
    Clusters,
    Contexts,
    Users,
}

impl List {
    fn name(self) -> &'static str {
        match self {
            Self::Clusters => "clusters",
            Self::Contexts => "contexts",
            Self::Users => "users",
        }
    }

    fn content(self) -> &'static str {
        match self {
            Self::Clusters => "cluster",
            Self::Contexts => "context",
            Self::Users => "user",
        }
    }
}

impl Kubeconfig {
    /// Reads files. Missing ones are skipped, unless all are missing.
    pub(crate) fn read(paths: &[PathBuf]) -> Result<Self, Unusable> {
        let mut documents = Vec::new();
        for path in paths {
            match Document::read(path) {
                Ok(document) => documents.push(document),
                Err(Ok(unusable)) => return Err(unusable),
                Err(Err(error)) if is_skipped(paths, &error) => {}
                Err(Err(error)) => {
                    let (path, detail) = (Some(path.clone()), error.to_string());
                    return Err(Unusable { path, detail });
                }
            }
        }
        if documents.is_empty() {
            let detail = match paths {
                [] => "it names no file",
                _ => "none of the files exists",
            };
            let detail = detail.to_owned();
            return Err(Unusable { path: None, detail });
        }
        Ok(Self { documents })
    }

    /// Reads a text that is not in a file.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, String> {
        let documents = vec![Document::parse(text, None)?];
        Ok(Self { documents })
    }

    /// Returns the name of the current context: of the first file that has one.
    pub(super) fn current_name(&self) -> Result<&str, String> {
        for document in &self.documents {
            let current = document
                .current_context()
                .map_err(|detail| within(document, detail))?;
            if !current.is_empty() {
                return Ok(current);
            }
        }
        Err(self.without_context("it has no current context"))
    }

    /// Returns the current context.
    pub(super) fn current(&self) -> Result<Entry<'_>, String> {
        let current = self.current_name()?;
        self.find(List::Contexts, current)?.ok_or_else(|| {
            let problem = format!("it has no context {current:?}, which is the current one");
            self.without_context(&problem)
        })
    }

    /// Finds an entry in the first file that has it.
    pub(super) fn find(&self, list: List, name: &str) -> Result<Option<Entry<'_>>, String> {
        for document in &self.documents {
            let entries = document
                .entries(list.name())
                .map_err(|detail| within(document, detail))?;
            let mut named = entries.filter(|(known, _)| *known == name);
            let Some((name, item)) = named.next() else {
                continue;
            };
            let file = (self.documents.len() > 1)
                .then(|| document.path())
                .flatten();
            let base = document.path().map(folder);
            let entry = Entry::new(list.content(), name, item, file)?.at(base);
            if named.next().is_some() {
                return Err(entry.wrong("is there twice; remove one of the two"));
            }
            return Ok(Some(entry));
        }
        Ok(None)
    }

    /// Returns all entries of a list whose content is a mapping.
    pub(super) fn all(&self, list: List) -> Result<Vec<Entry<'_>>, String> {
        let mut all = Vec::new();
        for document in &self.documents {
            let entries = document
                .entries(list.name())
                .map_err(|detail| within(document, detail))?;
            all.extend(
                entries
                    .filter_map(|(name, item)| Entry::new(list.content(), name, item, None).ok()),
            );
        }
        Ok(all)
    }

    /// Adds the names of the contexts, and what to do, to a problem.
    fn without_context(&self, problem: &str) -> String {
        let contexts = self
            .documents
            .iter()
            .flat_map(|each| each.entries(List::Contexts.name()));
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in contexts.flatten() {
            if !name.is_empty() && !names.contains(&name) {
                names.push(name);
            }
        }
        match names[..] {
            [] => format!("{problem}, and no other contexts"),
            _ => format!(
                "{problem}; choose one of {} with `kubectl config use-context NAME`",
                names.join(", ")
            ),
        }
    }
}

/// Returns whether a file is skipped because it does not exist, as kubectl does with one of several.
fn is_skipped(paths: &[PathBuf], error: &io::Error) -> bool {
    paths.len() > 1 && error.kind() == io::ErrorKind::NotFound
}

/// Names the file in a problem of it.
fn within(document: &Document, detail: String) -> String {
    match document.path() {
        Some(path) => format!("{}: {detail}", path.display()),
        None => detail,
    }
}

/// Returns the folder that relative paths of a file start from.
fn folder(path: &Path) -> PathBuf {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned())
}
