//! Parts of built-in objects that are written on their own.

use lariat_apimachinery::object::Object;
use serde_json::Value;

use super::metadata::{COLLECTIONS, copy_metadata};
use super::part::Part;

/// Copies only the written part from `sent`.
pub(super) fn restrict(part: Part, old: &Object, sent: &Object) -> Object {
    let mut new = old.clone();
    match part {
        Part::Ephemeral => copy(sent, &mut new, ["spec", "ephemeralContainers"]),
        Part::Approval => {
            copy(sent, &mut new, ["status", "conditions"]);
            COLLECTIONS
                .iter()
                .for_each(|member| copy_metadata(sent, &mut new, member));
        }
        Part::Resize => resize(sent, &mut new),
        // These parts are taken over by their own functions.
        Part::Main | Part::Status | Part::Finalize => {}
    }
    new
}

fn copy(from: &Object, to: &mut Object, [part, member]: [&str; 2]) {
    let value = from.get(part).and_then(|part| part.get(member)).cloned();
    let part = to
        .entry(part)
        .or_insert_with(|| Value::Object(Object::new()));
    let Some(part) = part.as_object_mut() else {
        return;
    };
    match value {
        Some(value) => part.insert(member.to_owned(), value),
        None => part.remove(member),
    };
}

/// Copies the resources of containers and Pod, which a resize may change.
///
/// Other containers are taken over too, and refused later.
fn resize(sent: &Object, new: &mut Object) {
    let lists = ["containers", "initContainers"];
    let same = |member: &&str| list(sent, "spec", member).len() == list(new, "spec", member).len();
    if !lists.iter().all(same) {
        new.insert("spec".into(), sent.get("spec").cloned().unwrap_or_default());
        return;
    }
    copy(sent, new, ["spec", "resources"]);
    for member in lists {
        let wanted = list(sent, "spec", member);
        let mut pairs = wanted.iter().zip(list(new, "spec", member));
        // Other containers are no resize. Taken over as they are, they are refused by the validation.
        if pairs.any(|(wanted, is)| wanted["name"] != is["name"]) {
            copy(sent, new, ["spec", member]);
            continue;
        }
        let containers = new
            .get_mut("spec")
            .and_then(|spec| spec.get_mut(member)?.as_array_mut());
        for (container, wanted) in containers.into_iter().flatten().zip(wanted) {
            let Some(container) = container.as_object_mut() else {
                continue;
            };
            for part in ["resources", "resizePolicy"] {
                match wanted.get(part) {
                    Some(value) => container.insert(part.to_owned(), value.clone()),
                    None => container.remove(part),
                };
            }
        }
    }
}

fn list<'a>(object: &'a Object, part: &str, member: &str) -> &'a [Value] {
    let list = object
        .get(part)
        .and_then(|part| part.get(member)?.as_array());
    list.map_or(&[], Vec::as_slice)
}
