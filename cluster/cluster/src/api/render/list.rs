//! Answers that are lists.

use bytes::Bytes;

use super::renderer::Renderer;
use crate::status::ApiError;
use crate::store::Stored;
use crate::strategy::view;
use crate::verbs::ListPage;
use crate::wire::negotiate::Shape;
use crate::wire::protobuf;
use crate::wire::reply::Reply;

/// Lists are written in pieces of about this many bytes.
const PIECE: usize = 64 * 1024;

const END: &[u8] = b"]}\n";

/// Writes a list piece by piece.
pub(super) fn pieces(
    renderer: Renderer,
    mut page: ListPage,
) -> impl Iterator<Item = Bytes> + use<> {
    let items = Items::new(renderer);
    if let Some(table) = &items.renderer.table {
        table.sort(&mut page.objects);
    }
    let mut opening = items.opening(&page);
    let mut end = END;
    let is_made_of_nil = match &items.renderer.table {
        Some(table) => table.has_default_columns(),
        None => items.only_metadata,
    };
    if page.objects.is_empty() && is_made_of_nil {
        // Go appends to a nil slice here, so an empty list is null.
        opening.pop();
        end = b"null}\n";
    }
    let mut opening = Some(opening);
    let mut objects = page.objects.into_iter().peekable();
    std::iter::from_fn(move || {
        let is_first = opening.is_some();
        let mut piece = opening.take().unwrap_or_default();
        // The first piece is written even without an object, since it has the opening of the list.
        if !is_first && objects.peek().is_none() {
            return None;
        }
        while piece.len() < PIECE
            && let Some(stored) = objects.next()
        {
            items.write(&mut piece, &stored);
        }
        if objects.peek().is_none() {
            piece.extend_from_slice(end);
        }
        Some(Bytes::from(piece))
    })
}

/// Writes a list in protobuf, whose length comes first, in one piece.
pub(super) fn protobuf(renderer: Renderer, page: &ListPage) -> Reply {
    let items = Items::new(renderer);
    let mut list = items.opening(page);
    list.extend_from_slice(END);
    let objects = page.objects.iter().map(|stored| {
        let mut item = vec![b'['];
        items.write(&mut item, stored);
        // What is stored is an object, and so is its metadata with a type.
        serde_json::from_slice(&item[1..]).unwrap_or_default()
    });
    match protobuf::write_list(&list, objects) {
        Some(list) => Reply::protobuf(list),
        None => ApiError::internal("the kind of the list is not known in protobuf").into(),
    }
}

/// Writes the items of a list between its beginning and its end.
struct Items {
    renderer: Renderer,
    /// `"kind":…,"apiVersion":…` of the list.
    head: String,
    /// The same of every item, empty if items go without.
    item_head: String,
    /// Whether an empty continue token says that the list is complete.
    marks_end: bool,
    only_metadata: bool,
}

impl Items {
    fn new(renderer: Renderer) -> Self {
        let resource = &renderer.resource;
        if renderer.format.shape != Shape::Whole {
            let version = renderer.format.meta.api_version();
            return Self {
                head: format!(r#""kind":"PartialObjectMetadataList","apiVersion":"{version}""#),
                item_head: renderer.metadata_head(),
                marks_end: false,
                only_metadata: true,
                renderer,
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
            renderer,
        }
    }

    /// Writes the list up to its first item.
    fn opening(&self, page: &ListPage) -> Vec<u8> {
        let mut metadata = format!(r#""resourceVersion":"{}""#, page.revision);
        match &page.continue_token {
            Some(token) => metadata.push_str(&format!(r#","continue":"{token}""#)),
            None if self.marks_end => metadata.push_str(r#","continue":"""#),
            None => {}
        }
        if let Some(remaining) = page.remaining {
            metadata.push_str(&format!(r#","remainingItemCount":{remaining}"#));
        }
        if let Some(table) = &self.renderer.table {
            return table.opening(&metadata, true);
        }
        let head = &self.head;
        format!(r#"{{{head},"metadata":{{{metadata}}},"items":["#).into_bytes()
    }

    fn write(&self, piece: &mut Vec<u8>, stored: &Stored) {
        if piece.last() != Some(&b'[') {
            piece.push(b',');
        }
        if let Some(table) = &self.renderer.table {
            let reread = view::reread(&self.renderer.resource, stored);
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
        let reread = view::reread(&self.renderer.resource, stored);
        let shown = reread.as_ref().unwrap_or(stored);
        // Without a type in front of it, the content begins behind its comma.
        let comma = usize::from(self.item_head.is_empty());
        piece.extend_from_slice(&shown.content()[comma..]);
    }
}
