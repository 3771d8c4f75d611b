//! The order of the items of merged lists.

use serde_json::Value;

use super::items::{self, Places, id, is_deletion, same, wrong_type};
use super::lists;
use super::lookup::{self, Member, unmergeable};
use super::maps::{DIRECTIVE, Outcome, SET_ORDER, malformed, without_directives};
use crate::go_text::value as go;
use crate::object::Object;
use crate::schema::TypeRef;

const LIST: &str = "[]interface {}";

/// The number of items that Go sorts by insertion.
// The block size of Go's `sort.SliceStable`.
const BLOCK: usize = 20;

/// The identity of the items of a list.
#[derive(Debug, Clone, Copy)]
pub(super) struct Keyed<'a> {
    pub(super) key: Option<&'a str>,
    /// Whether the items are maps.
    pub(super) maps: bool,
}

/// Merges the lists whose order a patch sets.
///
/// The lists and their orders are removed from the patch.
pub(super) fn set_orders(
    typed: TypeRef<'_>,
    original: &mut Object,
    patch: &mut Object,
) -> Outcome<()> {
    let is_order = |name: &&String| name.starts_with(SET_ORDER);
    let orders: Vec<String> = patch.keys().filter(is_order).cloned().collect();
    for directive in orders {
        let order = patch.remove(&directive).unwrap_or_default();
        let Value::Array(order) = order else {
            return wrong_type(LIST, &order);
        };
        let Some(name) = directive[SET_ORDER.len()..].strip_prefix('/') else {
            return malformed("invalid patch format of setElementOrder list");
        };
        // `mergePatchIntoOriginal`: the order in the patch holds for the merged list, not for the patch's list only.
        let old = list_in(original, name)?;
        let new = list_in(patch, name)?;
        let list = lookup::list(typed, name)?;
        // Checked although the order wins anyway: a mismatch means that the client computed its patch wrongly.
        check_order(&order, new.as_deref().unwrap_or_default(), &list)?;
        if let Some(merged) = merge_in_order(&list, &order, old, new)? {
            original.insert(name.to_owned(), merged.into());
            // Merged already, so that `merge_map` does not merge it again.
            patch.remove(name);
        }
    }
    Ok(())
}

fn list_in(object: &Object, name: &str) -> Outcome<Option<Vec<Value>>> {
    match object.get(name) {
        None => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items.clone())),
        Some(other) => wrong_type(LIST, other),
    }
}

/// Merges two lists, of which either may be absent; `None` if both are.
fn merge_in_order(
    list: &Member<'_>,
    order: &[Value],
    old: Option<Vec<Value>>,
    new: Option<Vec<Value>>,
) -> Outcome<Option<Vec<Value>>> {
    let (before, added) = (old.clone(), new.clone());
    let merged = match (old, new) {
        (None, None) => return Ok(None),
        (Some(old), None) => old,
        // Directives are removed, since there is nothing that they could be about.
        (None, Some(new)) => new.into_iter().filter_map(without_directives).collect(),
        (Some(old), Some(new)) => lists::merge(list, old, new)?,
    };
    let before = before.unwrap_or_default();
    let key = list.strategy.key.as_deref();
    let (first, rest) = partition(merged, order, key)?;
    let maps = items::are_maps(&before, &added.unwrap_or_default())?;
    let keyed = Keyed { key, maps };
    arranged(first, rest, order, &before, keyed).map(Some)
}

/// Checks that the items a patch adds to a list are in the order it sets.
fn check_order(order: &[Value], patch: &[Value], list: &Member<'_>) -> Outcome<()> {
    if order.is_empty() || patch.is_empty() {
        return Ok(());
    }
    let key = list.strategy.key.as_deref();
    if key.is_some() {
        patch
            .iter()
            .try_for_each(|item| items::members(item).map(drop))?;
    }
    // Items to delete have no place in the order.
    let is_wanted = |item: &&Value| key.is_none() || !is_deletion(item);
    let mut wanted = patch.iter().filter(is_wanted).peekable();
    let mut given = order.iter();
    while let Some(item) = wanted.peek() {
        // So does an item that replaces the list.
        if item.get(DIRECTIVE).is_some() {
            wanted.next();
            continue;
        }
        let Some(other) = given.next() else {
            return unmergeable(format!(
                "The order in patch list:\n{}\n doesn't match {SET_ORDER} list:\n{}\n",
                go(&patch.into()),
                go(&order.into())
            ));
        };
        // A subsequence is enough: the order also names items that the patch leaves alone.
        if same_key(item, other, key)? {
            wanted.next();
        }
    }
    Ok(())
}

fn same_key(left: &Value, right: &Value, key: Option<&str>) -> Outcome<bool> {
    if key.is_some() {
        items::members(left)?;
        items::members(right)?;
    }
    same(id(left, key)?, id(right, key)?)
}

/// Orders a merged list.
///
/// Items of the patch keep the order of the patch, others the order of the server; between the two, the server's order
/// decides where it has both.
pub(super) fn ordered(
    merged: Vec<Value>,
    patch: &[Value],
    server: &[Value],
    keyed: Keyed<'_>,
) -> Outcome<Vec<Value>> {
    let (first, rest) = partition(merged, patch, keyed.key)?;
    arranged(first, rest, patch, server, keyed)
}

/// Splits a list into the items that are in another one, and those that are not.
fn partition(
    list: Vec<Value>,
    by: &[Value],
    key: Option<&str>,
) -> Outcome<(Vec<Value>, Vec<Value>)> {
    if key.is_none()
        && list
            .iter()
            .chain(by)
            .any(|item| item.is_object() || item.is_array())
    {
        return items::crash();
    }
    // One index for all items, where `partitionMapsByPresentInList` searches the list for each.
    let places = Places::of(by, key);
    let (mut inside, mut outside) = (Vec::new(), Vec::new());
    for item in list {
        if places.find(id(&item, key)?)?.is_some() {
            inside.push(item);
        } else {
            outside.push(item);
        }
    }
    Ok((inside, outside))
}

/// Sorts the items of a patch and those of the server, and makes one list of both.
fn arranged(
    named: Vec<Value>,
    rest: Vec<Value>,
    patch: &[Value],
    server: &[Value],
    keyed: Keyed<'_>,
) -> Outcome<Vec<Value>> {
    // `normalizeElementOrder`: sort the two parts apart, then merge them like sorted lists.
    let (patched, served) = (Ranks::of(patch, keyed), Ranks::of(server, keyed));
    let named = patched.sort(named, patch)?;
    let rest = served.sort(rest, server)?;
    let mut out = Vec::with_capacity(named.len() + rest.len());
    let (mut named, mut rest) = (named.into_iter().peekable(), rest.into_iter().peekable());
    while let (Some(left), Some(right)) = (rest.peek(), named.peek()) {
        let places = (served.rank(left)?, served.rank(right)?);
        // An item that the server does not have yet comes first, which keeps the patch's new items where the patch has
        // them.
        let rest_first = matches!(places, (Some(left), Some(right)) if left < right);
        out.extend(if rest_first {
            rest.next()
        } else {
            named.next()
        });
    }
    out.extend(rest);
    out.extend(named);
    Ok(out)
}

/// The ranks of items in a list.
struct Ranks<'a> {
    places: Places,
    keyed: Keyed<'a>,
}

impl<'a> Ranks<'a> {
    fn of(list: &[Value], keyed: Keyed<'a>) -> Self {
        let key = keyed.key.filter(|_| keyed.maps);
        Self {
            places: Places::of(list, key),
            keyed: Keyed { key, ..keyed },
        }
    }

    fn rank(&self, item: &Value) -> Outcome<Option<usize>> {
        self.places.find(id(item, self.keyed.key)?)
    }

    /// Sorts items as they are in a list, those to delete last.
    ///
    /// Of an item that is not in it Go says that it comes before every other, which is no order; so this sorts as Go
    /// does.
    fn sort(&self, items: Vec<Value>, list: &[Value]) -> Outcome<Vec<Value>> {
        if self.keyed.maps {
            for item in items.iter().chain(list) {
                id(item, Some(self.keyed.key.unwrap_or_default()))?;
            }
        }
        let is_gone = |item: &Value| self.keyed.maps && is_deletion(item);
        let (gone, kept): (Vec<Value>, Vec<Value>) = items.into_iter().partition(is_gone);
        let mut ranked: Vec<(Option<usize>, Value)> = Vec::with_capacity(kept.len());
        for item in kept {
            ranked.push((self.rank(&item)?, item));
        }
        // Longer lists are sorted in blocks in Go. With its inconsistent comparison the result is hard to predict, so
        // here items without a rank just come first.
        if ranked.len() > BLOCK {
            ranked.sort_by_key(|(rank, _)| *rank);
        } else {
            insert_each(&mut ranked);
        }
        Ok(ranked
            .into_iter()
            .map(|(_, item)| item)
            .chain(gone)
            .collect())
    }
}

fn insert_each(ranked: &mut [(Option<usize>, Value)]) {
    let is_less = |left: Option<usize>, right: Option<usize>| match (left, right) {
        (Some(left), Some(right)) => left < right,
        // An unknown rank counts as less, as in `normalizeSliceOrder`, so later items of an unknown rank move
        // to the front.
        _ => true,
    };
    for end in 1..ranked.len() {
        let mut at = end;
        while at > 0 && is_less(ranked[at].0, ranked[at - 1].0) {
            ranked.swap(at, at - 1);
            at -= 1;
        }
    }
}
