//! An object of a file.

use std::fmt;
use std::path::PathBuf;

use serde_json::Value;

/// One object of a file, and its location.
#[derive(Debug, PartialEq)]
pub(crate) struct Document {
    pub(crate) location: DocumentLocation,
    pub(crate) object: Value,
}

/// The location of an object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DocumentLocation {
    pub(super) file: PathBuf,
    /// The number of its document in the file, from 1.
    pub(super) document: usize,
    /// Its number in a `List`, from 1.
    pub(super) item: Option<usize>,
}

impl fmt::Display for DocumentLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, document {}", self.file.display(), self.document)?;
        self.item.map_or(Ok(()), |item| write!(f, ", item {item}"))
    }
}

impl Document {
    pub(crate) fn text(&self, pointer: &str) -> &str {
        let value = self.object.pointer(pointer).and_then(Value::as_str);
        // A member that is missing and one that is no text are the same mistake to the user.
        value.unwrap_or_default()
    }

    /// Names the object for errors: its location, kind and name.
    pub(crate) fn title(&self) -> String {
        let (kind, name) = (self.text("/kind"), self.text("/metadata/name"));
        let title = format!("{}, {kind} {name}", self.location);
        // A document without a name, or without either, has less to say.
        title.trim_end_matches([' ', ',']).to_owned()
    }
}
