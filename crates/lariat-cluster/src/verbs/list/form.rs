//! How a list is written.

use std::sync::Arc;

use bytes::Bytes;
use lariat_apimachinery::kinds::Resource;

use super::selection::Selection;
use crate::printers::Table;
use crate::store::Stored;
use crate::strategy::view;
use crate::verbs::call::Call;
use crate::wire::negotiate::Shape;

/// Lists are written in pieces of about this many bytes.
const PIECE: usize = 64 * 1024;

/// Writes a list piece by piece.
pub(super) fn pieces(call: &Call, selection: Selection) -> impl Iterator<Item = Bytes> + use<> {
    let form = Form::of(call);
    let mut opening = Some(form.opening(&selection));
    let mut objects = selection.objects.into_iter().peekable();
    std::iter::from_fn(move || {
        let is_first = opening.is_some();
        let mut piece = opening.take().unwrap_or_default();
        if !is_first && objects.peek().is_none() {
            return None;
        }
        while piece.len() < PIECE
            && let Some(stored) = objects.next()
        {
            form.item(&mut piece, &stored);
        }
        if objects.peek().is_none() {
            piece.extend_from_slice(b"]}\n");
        }
        Some(Bytes::from(piece))
    })
}

/// What differs between kinds and shapes.
struct Form {
    /// `"kind":…,"apiVersion":…` of the list.
    head: String,
    /// The same of every item, empty if items go without.
    item_head: String,
    /// Whether the end of the list is told by an empty continue token.
    marks_end: bool,
    only_metadata: bool,
    /// Writes the items as rows instead.
    table: Option<Table>,
    resource: Arc<Resource>,
}

impl Form {
    fn of(call: &Call) -> Self {
        let resource = &call.resource;
        if call.shape != Shape::Whole {
            let version = call.form.meta.api_version();
            return Self {
                head: format!(r#""kind":"PartialObjectMetadataList","apiVersion":"{version}""#),
                item_head: call.metadata_head(),
                marks_end: false,
                only_metadata: true,
                table: (call.shape == Shape::Table).then(|| call.table()),
                resource: Arc::clone(resource),
            };
        }
        let (kind, version) = (&resource.list_kind, resource.api_version());
        // Custom resources are listed with their type, built-in kinds without.
        let item_head = resource.rules.custom.then(|| resource.head());
        Self {
            head: format!(r#""kind":"{kind}","apiVersion":"{version}""#),
            item_head: item_head.unwrap_or_default(),
            marks_end: resource.rules.custom,
            only_metadata: false,
            table: None,
            resource: Arc::clone(resource),
        }
    }

    /// Writes the list up to its first item.
    fn opening(&self, selection: &Selection) -> Vec<u8> {
        let mut metadata = format!(r#""resourceVersion":"{}""#, selection.revision);
        match &selection.continue_token {
            Some(token) => metadata.push_str(&format!(r#","continue":"{token}""#)),
            None if self.marks_end => metadata.push_str(r#","continue":"""#),
            None => {}
        }
        if let Some(remaining) = selection.remaining {
            metadata.push_str(&format!(r#","remainingItemCount":{remaining}"#));
        }
        if let Some(table) = &self.table {
            return table.opening(&metadata, true);
        }
        let head = &self.head;
        format!(r#"{{{head},"metadata":{{{metadata}}},"items":["#).into_bytes()
    }

    fn item(&self, piece: &mut Vec<u8>, stored: &Stored) {
        if piece.last() != Some(&b'[') {
            piece.push(b',');
        }
        if let Some(table) = &self.table {
            let reread = view::reread(&self.resource, stored);
            piece.extend_from_slice(&table.row(reread.as_ref().unwrap_or(stored)));
            return;
        }
        piece.push(b'{');
        piece.extend_from_slice(self.item_head.as_bytes());
        if self.only_metadata {
            piece.extend_from_slice(stored.metadata());
            piece.push(b'}');
            return;
        }
        let reread = view::reread(&self.resource, stored);
        let stored = reread.as_ref().unwrap_or(stored);
        // Without a type in front of it, the content begins behind its comma.
        let comma = usize::from(self.item_head.is_empty());
        piece.extend_from_slice(&stored.content()[comma..]);
    }
}
