//! The identity of the items of a list.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::managed::path::PathElement;
use crate::schema::{ListKind, TypeRef};

/// Returns the path element of an item of a list that is not atomic.
pub(super) fn element_of(
    kind: &ListKind,
    item: TypeRef<'_>,
    value: &Value,
) -> Result<PathElement, String> {
    match kind {
        // `setItemToPathElement`, with its messages.
        ListKind::Set => match value {
            Value::Object(_) => {
                Err("associative list without keys has an element that's a map type".to_owned())
            }
            Value::Array(_) => {
                Err("not supported: associative list with lists as elements".to_owned())
            }
            Value::Null => Err(
                "associative list without keys has an element that's an explicit null".to_owned(),
            ),
            _ => Ok(PathElement::value(value)),
        },
        ListKind::Map(keys) => keyed(keys, item, value),
        ListKind::Atomic => Err("an atomic list has no items of its own".to_owned()),
    }
}

fn keyed(
    keys: &[Cow<'static, str>],
    item: TypeRef<'_>,
    value: &Value,
) -> Result<PathElement, String> {
    let members = match value {
        Value::Object(members) => members,
        Value::Null => {
            return Err("associative list with keys may not have a null element".to_owned());
        }
        _ => return Err("associative list with keys may not have non-map elements".to_owned()),
    };
    // `keyedAssociativeListItemToPathElement`: one key is enough, missing ones are left out of the element.
    let mut found = Map::new();
    for key in keys {
        // What Go writes in any case is empty by default.
        let default = || {
            let field = item.field(key)?;
            field.default.clone().or_else(|| item.zero_of(field))
        };
        // A default counts as the value, so that a Service's port without a protocol and one with `TCP` are the same
        // item.
        if let Some(value) = members.get(&**key).cloned().or_else(default) {
            found.insert(key.clone().into_owned(), value);
        }
    }
    if found.is_empty() {
        let keys: Vec<String> = keys.iter().map(|key| format!("{key:?}")).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values \
             for any key fields)",
            keys.join(" ")
        ));
    }
    Ok(PathElement::keys(found))
}

/// The items of a list by their path elements, in order.
///
/// Items without a path element are left out.
#[derive(Debug, Default)]
pub(super) struct Items<'a> {
    list: Vec<(PathElement, Vec<&'a Value>)>,
    /// Each item, with the position of its element in `list`.
    each: Vec<(usize, &'a Value)>,
    /// The positions of the elements, for lists that are too long to be searched.
    places: HashMap<PathElement, usize>,
}

/// Shorter lists are searched from the front.
const SHORT: usize = 16;

impl<'a> Items<'a> {
    pub(super) fn of(kind: &ListKind, item: TypeRef<'_>, values: &'a [Value]) -> Self {
        let mut items = Self {
            list: Vec::with_capacity(values.len()),
            each: Vec::with_capacity(values.len()),
            places: HashMap::new(),
        };
        for value in values {
            let Ok(element) = element_of(kind, item, value) else {
                continue;
            };
            // Duplicates share a place; the list keeps all of them, in order.
            match items.place(&element) {
                Some(at) => {
                    items.list[at].1.push(value);
                    items.each.push((at, value));
                }
                None => items.push(element, value),
            }
        }
        items
    }

    fn push(&mut self, element: PathElement, value: &'a Value) {
        self.each.push((self.list.len(), value));
        self.list.push((element, vec![value]));
        match self.list.len() {
            ..SHORT => {}
            // At this length the map is made for all items at once; below it is empty, and `place` does not look into
            // it.
            SHORT => {
                let places = self.list.iter().enumerate();
                self.places = places
                    .map(|(at, (element, _))| (element.clone(), at))
                    .collect();
            }
            length => drop(
                self.places
                    .insert(self.list[length - 1].0.clone(), length - 1),
            ),
        }
    }

    fn place(&self, element: &PathElement) -> Option<usize> {
        match self.list.len() {
            ..SHORT => self.list.iter().position(|(each, _)| each == element),
            _ => self.places.get(element).copied(),
        }
    }

    pub(super) fn get(&self, element: &PathElement) -> &[&'a Value] {
        self.place(element).map_or(&[], |at| &self.list[at].1)
    }

    pub(super) fn has(&self, element: &PathElement) -> bool {
        self.place(element).is_some()
    }

    /// Returns each item with its path element, duplicates in their places.
    pub(super) fn each(&self) -> impl Iterator<Item = (&PathElement, &'a Value)> {
        let each = self.each.iter();
        each.map(|(at, value)| (&self.list[*at].0, *value))
    }

    pub(super) fn list(&self) -> &[(PathElement, Vec<&'a Value>)] {
        &self.list
    }
}
