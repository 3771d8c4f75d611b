//! The entries of `metadata.managedFields`.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::set::Set;
use crate::go_text;
use crate::object::Object;

/// The most managers that update (rather than apply) an object.
// `DefaultMaxUpdateManagers`.
const MOST_UPDATERS: usize = 10;

/// The longest name of a manager, in bytes.
// `FieldManagerMaxLength`.
const LONGEST_NAME: usize = 128;

/// The manager to which the oldest of too many updaters are merged.
const ANCIENT: &str = "ancient-changes";

/// The owner of fields: one entry of `managedFields`, without its fields.
///
/// An applier has one entry for all API versions. An updater has one entry for each version.
///
/// `Ord` is the order in which conflicts list managers; `write` sorts the entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manager {
    /// Its name, such as `kubectl`.
    pub name: String,
    /// Whether it applies, rather than updates.
    pub applies: bool,
    /// The version in which it updates; empty for appliers.
    pub api_version: String,
    /// The subresource through which it writes; empty for the object itself.
    pub subresource: String,
}

/// The fields that a manager owns.
#[derive(Debug, Clone)]
pub(crate) struct Owned {
    pub(crate) set: Set,
    pub(crate) api_version: String,
    /// The time of the manager's last change.
    pub(crate) time: Option<String>,
}

/// All owners of an object's fields.
#[derive(Debug, Clone, Default)]
pub(crate) struct Managed {
    pub(crate) owners: BTreeMap<Manager, Owned>,
}

impl Manager {
    /// Formats the manager as conflicts do.
    pub(super) fn shown(&self) -> String {
        let mut shown = format!("{:?}", self.name);
        if !self.subresource.is_empty() {
            shown.push_str(&format!(" with subresource {:?}", self.subresource));
        }
        if !self.applies {
            shown.push_str(&format!(" using {}", self.api_version));
        }
        shown
    }
}

/// Go sorts the JSON of managers, in which names end with a quotation mark.
impl Ord for Manager {
    fn cmp(&self, other: &Self) -> Ordering {
        let [name, others] = [self, other].map(|manager| manager.name.bytes().chain([b'"']));
        name.cmp(others)
            .then_with(|| other.applies.cmp(&self.applies))
            .then_with(|| self.api_version.cmp(&other.api_version))
            .then_with(|| self.subresource.cmp(&other.subresource))
    }
}

impl PartialOrd for Manager {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Managed {
    /// Reads the entries of an object, `None` if they cannot be read.
    pub(crate) fn of(object: &Object) -> Option<Self> {
        let entries = object.get("metadata")?.get("managedFields");
        // Absent is not unreadable: an object without entries has no owners, and may get some.
        let Some(entries) = entries.filter(|entries| !entries.is_null()) else {
            return Some(Self::default());
        };
        let mut owners = BTreeMap::new();
        for entry in entries.as_array()? {
            let (manager, owned) = read(entry)?;
            // Two entries with the same identity collapse into the last, as in the map that `DecodeManagedFields`
            // fills.
            owners.insert(manager, owned);
        }
        Some(Self { owners })
    }

    /// Writes the entries into an object; an object without owners has none.
    pub(crate) fn write(&self, metadata: &mut Object) {
        if self.owners.is_empty() {
            metadata.remove("managedFields");
            return;
        }
        let mut entries: Vec<(&Manager, &Owned)> = self.owners.iter().collect();
        // `sortEncodedManagedFields`: "Apply" sorts before "Update", then time and name decide. Times are RFC 3339 in
        // UTC, so they sort as text, and a missing one comes first as zero does in Go.
        entries.sort_by_key(|(manager, owned)| {
            let identity = (&manager.name, &owned.api_version, &manager.subresource);
            (!manager.applies, &owned.time, identity)
        });
        let entries = entries.into_iter().map(|(manager, owned)| {
            let operation = if manager.applies { "Apply" } else { "Update" };
            let mut entry = json!({
                "operation": operation, "apiVersion": owned.api_version,
                "fieldsType": "FieldsV1",
            });
            if !manager.name.is_empty() {
                entry["manager"] = manager.name.clone().into();
            }
            // Not in the macro, which would copy it.
            entry["fieldsV1"] = owned.set.to_json();
            if let Some(time) = &owned.time {
                entry["time"] = time.clone().into();
            }
            if !manager.subresource.is_empty() {
                entry["subresource"] = manager.subresource.clone().into();
            }
            entry
        });
        metadata.insert("managedFields".into(), entries.collect());
    }

    /// Removes fields that no longer exist from every set, and managers without fields.
    pub(super) fn retain(&mut self) {
        self.owners.retain(|_, owned| !owned.set.is_empty());
    }

    /// Merges the oldest updaters while there are too many.
    ///
    /// Source: `capManagersManager` in `k8s.io/apimachinery/pkg/util/managedfields/internal`.
    pub(super) fn cap(&mut self) {
        // Appliers are never merged: their sets decide what their next apply removes.
        let updaters = self.owners.iter().filter(|(manager, _)| !manager.applies);
        let mut excess = updaters.clone().count().saturating_sub(MOST_UPDATERS);
        if excess == 0 {
            return;
        }
        let mut updaters: Vec<(Option<String>, Manager)> = updaters
            .map(|(manager, owned)| (owned.time.clone(), manager.clone()))
            .collect();
        // Oldest first; of the same time, the order of the identities decides, so that the outcome is stable.
        updaters.sort();
        let mut first_of: BTreeMap<String, Manager> = BTreeMap::new();
        for (time, manager) in updaters {
            if excess == 0 {
                return;
            }
            // Only updaters of one version can be merged, since the fields of a set are those of its version.
            // Remembering the first updater of a version merges nothing, so it does not lower `excess`. An object with
            // ten versions and one updater each stays above the cap, as on a genuine server.
            let Some(first) = first_of.get(&manager.api_version).cloned() else {
                first_of.insert(manager.api_version.clone(), manager);
                continue;
            };
            let bucket = Manager {
                name: ANCIENT.to_owned(),
                subresource: String::new(),
                ..manager.clone()
            };
            if !self.owners.contains_key(&bucket)
                && let Some(owned) = self.owners.remove(&first)
            {
                self.owners.insert(bucket.clone(), owned);
            }
            if let Some(merged) = self.owners.remove(&manager)
                && let Some(owned) = self.owners.get_mut(&bucket)
            {
                owned.set = std::mem::take(&mut owned.set).union(&merged.set);
                // The one merged last is the most recent, since they are sorted by time.
                owned.time = time;
            }
            excess -= 1;
        }
    }
}

fn read(entry: &Value) -> Option<(Manager, Owned)> {
    // A value of the wrong type makes the entry unreadable; an absent one or null is the empty text, as in Go.
    let text = |member: &str| match entry.get(member) {
        None | Some(Value::Null) => Some(""),
        Some(value) => value.as_str(),
    };
    let applies = match text("operation")? {
        "Apply" => true,
        "Update" => false,
        _ => return None,
    };
    let api_version = text("apiVersion")?.to_owned();
    if api_version.is_empty() || text("fieldsType")? != "FieldsV1" {
        return None;
    }
    let fields = entry.get("fieldsV1").unwrap_or(&Value::Null);
    let set = match fields {
        Value::Null => Set::default(),
        fields => Set::from_json(fields).ok()?,
    };
    let manager = Manager {
        name: text("manager")?.to_owned(),
        applies,
        // `BuildManagerIdentifier`: an applier is the same one in every version, so its version is not part of its
        // identity.
        api_version: if applies {
            String::new()
        } else {
            api_version.clone()
        },
        subresource: text("subresource")?.to_owned(),
    };
    let time = text("time")?;
    let owned = Owned {
        set,
        api_version,
        time: (!time.is_empty()).then(|| time.to_owned()),
    };
    Some((manager, owned))
}

/// Returns whether the entries request a reset: an empty list, or one empty entry.
pub(super) fn is_reset(object: &Object) -> bool {
    let entries = object
        .get("metadata")
        .and_then(|m| m.get("managedFields"))
        .and_then(Value::as_array);
    match entries.map(Vec::as_slice) {
        Some([]) => true,
        Some([one]) => one.as_object().is_some_and(Object::is_empty),
        _ => false,
    }
}

/// Returns the name of the manager for a request.
///
/// It is `given`, the query parameter `fieldManager`, unless that is empty; otherwise the printable characters of the
/// user agent up to the first slash, at most 128 bytes; without one it is `unknown`.
///
/// Source: `managerOrUserAgent` in `k8s.io/apiserver/pkg/endpoints/handlers`.
///
/// ```
/// use lariat_apimachinery::managed::manager_name;
///
/// assert_eq!(manager_name(None, "kubectl/v1.2.3 (linux/amd64)"), "kubectl");
/// assert_eq!(manager_name(Some("my-controller"), "kubectl/v1.2.3"), "my-controller");
/// assert_eq!(manager_name(None, ""), "unknown");
/// ```
#[must_use]
pub fn manager_name(given: Option<&str>, user_agent: &str) -> String {
    // The length of a given manager is checked with the other options of the request; only the user agent is cut here.
    if let Some(given) = given.filter(|given| !given.is_empty()) {
        return given.to_owned();
    }
    let prefix = user_agent.split('/').next().unwrap_or_default();
    // `prefixFromUserAgent` drops what cannot be printed before it cuts, so that does not count towards the 128.
    let mut agent: String = prefix.chars().filter(|c| go_text::is_print(*c)).collect();
    agent.truncate(agent.floor_char_boundary(LONGEST_NAME));
    if agent.is_empty() {
        "unknown".to_owned()
    } else {
        agent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(entries: &Value) -> Object {
        let object = json!({"metadata": {"managedFields": entries}});
        object.as_object().unwrap().clone()
    }

    #[test]
    fn entries_survive_the_round_trip() {
        let entries = json!([
            {"manager": "a", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
             "fieldsV1": {"f:data": {}}, "time": "2026-01-01T00:00:00Z"},
            {"manager": "b", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
             "fieldsV1": {"f:x": {}}, "time": "2026-01-01T00:00:00Z", "subresource": "status"},
        ]);
        let managed = Managed::of(&object(&entries)).unwrap();
        let mut metadata = Object::new();
        managed.write(&mut metadata);
        assert_eq!(metadata["managedFields"], entries);
    }

    #[test]
    fn what_cannot_be_read_is_no_entry() {
        for entry in [
            json!({"operation": "Other"}),
            json!({"operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"x": {}}}),
            json!({"operation": "Apply", "apiVersion": "v1", "fieldsV1": {"f:x": {}}}),
            json!({"operation": "Apply", "apiVersion": "v1", "fieldsType": "X", "fieldsV1": {"f:x": {}}}),
            json!({"operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": {"f:x": {}}}),
            json!(1),
        ] {
            assert!(Managed::of(&object(&json!([entry]))).is_none(), "{entry}");
        }
        assert!(is_reset(&object(&json!([{}]))));
        assert!(is_reset(&object(&json!([]))));
    }

    #[test]
    fn managers_have_names_that_can_be_printed() {
        assert_eq!(
            manager_name(None, "a\u{200b} b\u{a0}\u{7}c/v1"),
            "a bc".to_owned()
        );
        let long = format!("a{}", "é".repeat(100));
        assert_eq!(manager_name(None, &long), long[..127]);
        assert_eq!(manager_name(None, "\u{a0}/v1"), "unknown");
    }

    #[test]
    fn the_oldest_of_too_many_updaters_become_one() {
        let entries: Vec<Value> = (0..13)
            .map(|n| {
                json!({"manager": format!("m{n}"), "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
                    "fieldsV1": {format!("f:x{n}"): {}}, "time": format!("2026-01-01T00:00:{n:02}Z")})
            })
            .collect();
        let mut managed = Managed::of(&object(&entries.into())).unwrap();
        managed.cap();
        assert_eq!(managed.owners.len(), MOST_UPDATERS);
        let ancient = managed
            .owners
            .iter()
            .find(|(manager, _)| manager.name == ANCIENT);
        let (_, owned) = ancient.unwrap();
        assert_eq!(owned.set, Set::of(&["x0", "x1", "x2", "x3"]));
        assert_eq!(owned.time.as_deref(), Some("2026-01-01T00:00:03Z"));
    }
}
