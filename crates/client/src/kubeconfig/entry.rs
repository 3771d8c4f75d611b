//! An entry of a kubeconfig, whose members are read when they are needed.

use std::fs::File;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value};

/// A cluster, context or user, or an object within one.
#[derive(Debug)]
pub(super) struct Entry<'a> {
    /// The words that name it in errors.
    title: String,
    members: Option<&'a Map<String, Value>>,
    /// The folder that relative paths start from.
    base: Option<PathBuf>,
}

impl<'a> Entry<'a> {
    /// Reads an item of a list; `file` is named in errors.
    pub(super) fn new(
        content: &'static str,
        name: &str,
        item: &'a Map<String, Value>,
        file: Option<&Path>,
    ) -> Result<Self, String> {
        let title = match file {
            Some(file) => format!("{content} {name:?} of {}", file.display()),
            None => format!("{content} {name:?}"),
        };
        let members =
            object(item.get(content)).ok_or_else(|| format!("{title} is not a mapping"))?;
        Ok(Self {
            title,
            members,
            base: None,
        })
    }

    /// Returns an entry without members, for a name that is not in the list.
    pub(super) fn missing(content: &'static str, name: &str) -> Self {
        let title = format!("{content} {name:?}");
        Self {
            title,
            members: None,
            base: None,
        }
    }

    /// Sets the folder that relative paths start from.
    pub(super) fn at(self, base: Option<PathBuf>) -> Self {
        Self { base, ..self }
    }

    /// Adds the name of the entry to a problem.
    pub(super) fn wrong(&self, problem: impl AsRef<str>) -> String {
        format!("{} {}", self.title, problem.as_ref())
    }

    /// Returns a member; `null` counts as missing.
    pub(super) fn get(&self, name: &str) -> Option<&'a Value> {
        self.members?.get(name).filter(|value| !value.is_null())
    }

    /// Returns a text; an empty one counts as missing.
    pub(super) fn text(&self, name: &str) -> Result<Option<&'a str>, String> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(&text[..]).filter(|text| !text.is_empty())),
            Some(_) => {
                Err(self.wrong(format!("has a {name} that is not a text; put it in quotes")))
            }
        }
    }

    /// Returns a flag, false if it is missing.
    pub(super) fn flag(&self, name: &str) -> Result<bool, String> {
        match self.get(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(self.wrong(format!("has a {name} that is neither true nor false"))),
        }
    }

    /// Returns the bytes of a text in base64; no bytes count as missing.
    pub(super) fn data(&self, name: &str) -> Result<Option<Vec<u8>>, String> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        // As Go's decoder does.
        let text: String = text
            .chars()
            .filter(|letter| !matches!(letter, '\r' | '\n'))
            .collect();
        let bytes = BASE64.decode(text);
        let bytes = bytes.map_err(|_| self.wrong(format!("has a {name} that is not base64")))?;
        Ok(Some(bytes).filter(|bytes| !bytes.is_empty()))
    }

    /// Returns the path of a file, from the folder of the kubeconfig.
    pub(super) fn path(&self, name: &str) -> Result<Option<String>, String> {
        let path = self.text(name)?;
        Ok(path.map(|path| self.absolute(path)))
    }

    /// Returns the path of a file that can be read.
    pub(super) fn file(&self, name: &str) -> Result<Option<String>, String> {
        let path = self.path(name)?;
        if let Some(path) = &path {
            File::open(path).map_err(|error| {
                self.wrong(format!(
                    "has a {name} {path:?} that cannot be read: {error}"
                ))
            })?;
        }
        Ok(path)
    }

    /// Returns a path from the folder of the kubeconfig.
    pub(super) fn absolute(&self, path: &str) -> String {
        let base = self.base.as_deref().unwrap_or(Path::new(""));
        // `join` takes an absolute path as it is. Paths that are not UTF-8 cannot stand in YAML.
        base.join(path).to_string_lossy().into_owned()
    }

    /// Returns the texts of a list; `null` in it is an empty text.
    pub(super) fn texts(&self, name: &str) -> Result<Vec<String>, String> {
        let wrong = || self.wrong(format!("has {name} that are not a list of texts"));
        let texts = |value: &Value| match value {
            Value::Null => Ok(String::new()),
            Value::String(text) => Ok(text.clone()),
            _ => Err(wrong()),
        };
        match self.get(name) {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => items.iter().map(texts).collect(),
            Some(_) => Err(wrong()),
        }
    }

    /// Returns the objects of a list.
    pub(super) fn objects(&self, name: &str) -> Result<Vec<Entry<'a>>, String> {
        let items = match self.get(name) {
            None => &[][..],
            Some(Value::Array(items)) => items,
            Some(_) => return Err(self.wrong(format!("has {name} that are not a list"))),
        };
        let inner = |(at, item)| {
            let title = format!("{}: {name}[{at}]", self.title);
            let members = object(Some(item)).ok_or_else(|| format!("{title} is not a mapping"))?;
            Ok(Entry {
                title,
                members,
                base: self.base.clone(),
            })
        };
        items.iter().enumerate().map(inner).collect()
    }

    /// Returns an object, if it is there.
    pub(super) fn object(&self, name: &str) -> Result<Option<Entry<'a>>, String> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        let title = format!("{}: {name}", self.title);
        let members = object(Some(value)).ok_or_else(|| format!("{title} is not a mapping"))?;
        Ok(Some(Entry {
            title,
            members,
            base: self.base.clone(),
        }))
    }

    /// Returns the members that are texts, or lists of texts.
    pub(super) fn members(&self) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a> {
        self.members.into_iter().flatten()
    }
}

/// Returns the members of an object; `null` has none, and `None` means another type.
fn object(value: Option<&Value>) -> Option<Option<&Map<String, Value>>> {
    match value {
        None | Some(Value::Null) => Some(None),
        Some(Value::Object(members)) => Some(Some(members)),
        Some(_) => None,
    }
}
