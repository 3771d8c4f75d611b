//! Answers about one object, in the shape the client asked for.

use http::StatusCode;
use lariat_apimachinery::object::Object;

use super::call::Call;
use crate::printers::{Include, Table};
use crate::store::{Draft, EventType, Stored};
use crate::strategy::view;
use crate::wire::negotiate::Shape;
use crate::wire::reply::Reply;

impl Call {
    /// Returns the type of an object of which only the metadata is shown, in JSON.
    pub(crate) fn metadata_head(&self) -> String {
        let version = self.form.meta.api_version();
        format!(r#""kind":"PartialObjectMetadata","apiVersion":"{version}""#)
    }

    /// Returns what writes the tables that the client asked for, whose parameters were checked.
    pub(super) fn table(&self) -> Table {
        let include = Include::of(&self.query).unwrap_or_default();
        Table::new(&self.resource, self.form.meta, include, self.server.clock)
    }

    /// Answers an object that is not (or not yet) stored, under a given version.
    pub(crate) fn answer(&self, code: StatusCode, object: &Object, revision: u64) -> Reply {
        let stored = Draft::new(object).stamp(revision, EventType::Added);
        self.answer_stored(code, &stored)
    }

    /// Answers a state, in the version and the shape the client asked for.
    pub(crate) fn answer_stored(&self, code: StatusCode, stored: &Stored) -> Reply {
        let reread = view::reread(&self.resource, stored);
        let stored = reread.as_ref().unwrap_or(stored);
        match self.shape {
            Shape::Whole => {
                let head = self.resource.head();
                Reply::json_of(code, &[b"{", head.as_bytes(), stored.content()])
            }
            Shape::Metadata | Shape::MetadataList => {
                let head = self.metadata_head();
                Reply::json_of(code, &[b"{", head.as_bytes(), stored.metadata(), b"}"])
            }
            Shape::Table => Reply::json(code, self.table().single(stored, true)),
        }
    }
}
