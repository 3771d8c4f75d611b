//! One kubeconfig file, as it was written.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use lariat_core::yaml;
use serde_json::{Map, Value};

/// A kubeconfig that cannot be used: the file, if it has one, and what is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unusable {
    pub(crate) path: Option<PathBuf>,
    pub(crate) detail: String,
}

/// The content of a file.
#[derive(Debug, Default)]
pub(super) struct Document {
    /// `None` for a text that is not in a file.
    path: Option<PathBuf>,
    members: Map<String, Value>,
}

impl Document {
    /// Reads a file.
    pub(super) fn read(path: &Path) -> Result<Self, io::Result<Unusable>> {
        let bytes = fs::read(path).map_err(Err)?;
        let unusable = |detail| {
            Ok(Unusable {
                path: Some(path.to_owned()),
                detail,
            })
        };
        Self::parse(&bytes, Some(path)).map_err(unusable)
    }

    /// Reads the content of a file. An empty one has no entries.
    pub(super) fn parse(bytes: &[u8], path: Option<&Path>) -> Result<Self, String> {
        let text = decoded(bytes).ok_or("it is neither UTF-8 nor UTF-16")?;
        // The problem as the parser words it may quote the file.
        let value = yaml::read(&text)
            .map_err(|error| format!("it cannot be read as YAML, see line {}", error.line()))?;
        let members = match value {
            Value::Null => Map::new(),
            Value::Object(members) => members,
            _ => return Err("it is not a kubeconfig, but a list or a single value".to_owned()),
        };
        let is = |name: &str, expected: &str| match members.get(name) {
            None | Some(Value::Null) => true,
            Some(value) => value == "" || value == expected,
        };
        if !is("kind", "Config") || !is("apiVersion", "v1") {
            return Err("it is not a kubeconfig: it has another kind or apiVersion".to_owned());
        }
        let path = path.map(Path::to_owned);
        Ok(Self { path, members })
    }

    pub(super) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns the name of the current context; empty if there is none.
    pub(super) fn current_context(&self) -> Result<&str, String> {
        match self.members.get("current-context") {
            None | Some(Value::Null) => Ok(""),
            Some(Value::String(name)) => Ok(name),
            Some(_) => Err("its current-context is not a text; put it in quotes".to_owned()),
        }
    }

    /// Returns the entries of a list, with their names. Entries that are not mappings are left out.
    pub(super) fn entries<'a>(
        &'a self,
        list: &'static str,
    ) -> Result<impl Iterator<Item = (&'a str, &'a Map<String, Value>)>, String> {
        let items = match self.members.get(list) {
            None | Some(Value::Null) => &[][..],
            Some(Value::Array(items)) => items,
            Some(_) => return Err(format!("its {list} are not a list")),
        };
        Ok(items.iter().filter_map(|item| {
            let item = item.as_object()?;
            let name = match item.get("name") {
                None | Some(Value::Null) => "",
                Some(name) => name.as_str()?,
            };
            Some((name, item))
        }))
    }
}

/// Decodes a text: UTF-8, or what a byte order mark says.
fn decoded(bytes: &[u8]) -> Option<String> {
    let utf16 = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let (pairs, rest) = bytes.as_chunks();
        let units: Vec<u16> = pairs.iter().copied().map(unit).collect();
        rest.is_empty().then(|| String::from_utf16(&units).ok())?
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8(rest.to_vec()).ok(),
        bytes => String::from_utf8(bytes.to_vec()).ok(),
    }
}
