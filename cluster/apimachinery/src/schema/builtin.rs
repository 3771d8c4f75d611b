//! The built-in types, read from their table at the first use.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock, OnceLock};

use super::resolve::{Schema, TypeRef};
use super::types::{
    Field, List, ListKind, Map, PatchStrategy, Scalar, SchemaAlternative, Struct, Type, TypeId,
    Types, Wire, Zero,
};

/// Made by `cluster/scripts/generate.py`; `types_table.py` beside it describes the format.
const TABLE: &str = include_str!("types.txt");

static BUILTIN: LazyLock<Builtin> = LazyLock::new(|| Builtin::read(TABLE));

#[derive(Debug)]
pub(super) struct Builtin {
    pub(super) types: Arc<Types>,
    /// In the order of the names, which OpenAPI documents are written in.
    pub(super) by_name: BTreeMap<&'static str, TypeId>,
    names: OnceLock<HashMap<TypeId, &'static str>>,
    /// The names of types that are read as any value or as a text.
    pub(super) aliases: HashMap<TypeId, &'static str>,
    /// Types that others are copies of, by the id of the copy.
    copies: Vec<(TypeId, &'static str)>,
    /// By group with version, and kind; in this order, as above.
    pub(super) kinds: BTreeMap<(&'static str, &'static str), TypeId>,
}

/// Returns the type of a built-in kind, if the table has it.
///
/// ```
/// use lariat_apimachinery::schema;
///
/// let deployment = schema::builtin("apps/v1", "Deployment").expect("it is built in");
/// assert!(deployment.root().member("spec").is_some());
/// assert!(schema::builtin("apps/v1", "Widget").is_none());
/// ```
#[must_use]
pub fn builtin(api_version: &str, kind: &str) -> Option<Schema> {
    let root = *BUILTIN.kinds.get(&(api_version, kind))?;
    Some(Schema {
        types: Arc::clone(&BUILTIN.types),
        root,
    })
}

/// Returns whether a version of a group has built-in kinds.
#[must_use]
pub fn has_version(api_version: &str) -> bool {
    let mut behind = BUILTIN.kinds.range((api_version, "")..);
    behind
        .next()
        .is_some_and(|((version, _), _)| *version == api_version)
}

/// Returns a type that belongs to all groups, such as `DeleteOptions`.
#[cfg(feature = "protobuf")]
pub(crate) fn of_every_group(kind: &str) -> Option<Schema> {
    let root = *BUILTIN.by_name.get(format!("meta.v1.{kind}").as_str())?;
    Some(Schema {
        types: Arc::clone(&BUILTIN.types),
        root,
    })
}

/// Returns all built-in types.
pub(super) fn all() -> &'static Builtin {
    &BUILTIN
}

/// Returns all built-in types, and the id of `ObjectMeta`.
pub(super) fn object_meta() -> (&'static Types, TypeId) {
    let id = BUILTIN.by_name["meta.v1.ObjectMeta"];
    (&BUILTIN.types, id)
}

impl Builtin {
    fn read(table: &'static str) -> Self {
        let mut reader = Reader::default();
        let mut kinds = Vec::new();
        let mut granular = Vec::new();
        let mut lines = table
            .lines()
            .filter(|line| !line.starts_with('#'))
            .peekable();
        while let Some(line) = lines.next() {
            let words: Vec<&str> = line.split(' ').collect();
            // A kind may come before the lines of its type, which is why names get their ids at the first mention.
            if let ["kind", api_version, kind, name] = words[..] {
                kinds.push(((api_version, kind), reader.named(name)));
                continue;
            }
            let mut fields = Vec::new();
            while let Some(line) = lines.next_if(|line| line.starts_with(' ')) {
                let field = reader.field(&line[1..]);
                if line.split(' ').any(|word| word == "map=granular") {
                    granular.push((words[0], field.name.clone()));
                }
                fields.push(field);
            }
            let id = reader.named(words[0]);
            let atomic = words.contains(&"map=atomic");
            let read = Struct {
                atomic,
                ..Struct::new(fields)
            };
            reader.types.set(id, Type::Struct(read));
        }
        // After all lines are read, since a copy is made of the finished structure.
        let copies = granular
            .iter()
            .filter_map(|(owner, field)| reader.separate(owner, field))
            .collect();
        Self {
            types: Arc::new(reader.types),
            by_name: reader.by_name,
            copies,
            names: OnceLock::new(),
            aliases: reader.aliases,
            kinds: kinds.into_iter().collect(),
        }
    }
}

impl Builtin {
    /// Returns the name of a type, if it has one.
    pub(super) fn name(&self, id: TypeId) -> Option<&'static str> {
        let names = self.by_name.iter().map(|(name, id)| (*id, *name));
        let names = names.chain(self.copies.iter().copied());
        self.names.get_or_init(|| names.collect()).get(&id).copied()
    }

    /// Returns the type that a type is a copy of, or the type itself.
    pub(super) fn original(&self, id: TypeId) -> TypeId {
        // There is one copy, so a search is enough.
        let copy = self.copies.iter().find(|(copy, _)| *copy == id);
        copy.map_or(id, |(_, name)| self.by_name[name])
    }
}

/// Returns the name of a built-in type, if it has one.
pub(super) fn name_of(typed: TypeRef<'_>) -> Option<&'static str> {
    BUILTIN.name(typed.id_in(&BUILTIN.types)?)
}

/// Returns whether values of a built-in type are opaque: kept and owned whole.
pub(super) fn is_raw(typed: TypeRef<'_>) -> bool {
    // An id of another table could be the same number.
    let id = typed.id_in(&BUILTIN.types);
    id.and_then(|id| BUILTIN.aliases.get(&id)) == Some(&RAW)
}

/// The name of the type of embedded JSON that is not decoded.
const RAW: &str = "runtime.RawExtension";

/// Returns the version and name of each kind.
#[cfg(all(test, feature = "protobuf"))]
pub(crate) fn kinds() -> impl Iterator<Item = (&'static str, &'static str)> {
    BUILTIN.kinds.keys().copied()
}

#[derive(Default)]
struct Reader {
    types: Types,
    by_name: BTreeMap<&'static str, TypeId>,
    aliases: HashMap<TypeId, &'static str>,
    /// Types without a name, by how they are written, so that each is there once.
    written: HashMap<(&'static str, &'static str), TypeId>,
}

impl Reader {
    /// Returns the id of a named type, which may be read later.
    fn named(&mut self, name: &'static str) -> TypeId {
        let types = &mut self.types;
        *self
            .by_name
            .entry(name)
            .or_insert_with(|| types.add(Type::Any))
    }

    /// Copies a field that Go marks as granular, so that the copy merges by member.
    ///
    /// The type is atomic in other places.
    /// Returns the copy with its name.
    fn separate(&mut self, owner: &str, field: &str) -> Option<(TypeId, &'static str)> {
        let owner = *self.by_name.get(owner)?;
        // Only this field gets the copy: the shared type stays atomic for all others.
        let Type::Struct(mut fields) = self.types.get(owner).clone() else {
            return None;
        };
        let field = fields.fields.iter_mut().find(|each| each.name == field)?;
        let shared = field.type_id;
        let Type::Struct(structure) = self.types.get(shared).clone() else {
            return None;
        };
        field.type_id = self.types.add(Type::Struct(Struct {
            atomic: false,
            ..structure
        }));
        let copy = field.type_id;
        self.types.set(owner, Type::Struct(fields));
        let mut names = self.by_name.iter();
        let (name, _) = names.find(|(_, id)| **id == shared)?;
        Some((copy, *name))
    }

    /// Reads a field: name, type, flags.
    fn field(&mut self, line: &'static str) -> Field {
        let (name, rest) = line.split_once(' ').unwrap_or((line, "any"));
        let (written, flags) = rest.split_once(' ').unwrap_or((rest, ""));
        let find = |name: &str| flags.split(' ').find_map(|flag| flag.strip_prefix(name));
        let flag = |name: &str| find(name).unwrap_or_default();
        let default = find("default=");
        Field {
            name: Cow::Borrowed(name),
            type_id: self.type_of(written, flags),
            required: flags.split(' ').any(|flag| flag == "!"),
            default: default.map(Into::into),
            values: find("enum="),
            patch: patch_of(flag("patch=")),
            zero: zero_of(flags),
            wire: wire_of(flags),
        }
    }

    fn type_of(&mut self, written: &'static str, flags: &'static str) -> TypeId {
        if let Some(name) = written.strip_prefix('@') {
            return self.named(name);
        }
        // Flags are part of the key, since they tell a set from an atomic list of the same items.
        if let Some(known) = self.written.get(&(written, flags)) {
            return *known;
        }
        let read = if let Some(item) = written.strip_prefix("[]") {
            Type::List(List {
                item: self.type_of(item, ""),
                kind: list_kind_of(flags),
            })
        } else if let Some(value) = written.strip_prefix("{}") {
            Type::Map(Map {
                value: self.type_of(value, ""),
                atomic: flags.split(' ').any(|flag| flag == "map=atomic"),
            })
        } else {
            let scalar = written.split(':').next().and_then(scalar_of);
            scalar.map_or(Type::Any, Type::Scalar)
        };
        let id = self.types.add(read);
        // In `[]string:Name` the alias belongs to the item, which was read by the call for the item.
        if let Some((beginning, name)) = written.split_once(':')
            && !beginning.starts_with(['[', '{'])
        {
            self.aliases.insert(id, name);
        }
        self.written.insert((written, flags), id);
        id
    }
}

fn scalar_of(written: &str) -> Option<Scalar> {
    Some(match written {
        "string" => Scalar::String,
        "int32" => Scalar::Int32,
        "int64" => Scalar::Int64,
        "number" => Scalar::Number,
        "bool" => Scalar::Bool,
        "bytes" => Scalar::Bytes,
        "time" => Scalar::Time,
        "micro-time" => Scalar::MicroTime,
        "int-or-string" => Scalar::IntOrString,
        "quantity" => Scalar::Quantity,
        _ => return None,
    })
}

fn list_kind_of(flags: &'static str) -> ListKind {
    for flag in flags.split(' ') {
        if flag == "list=set" {
            return ListKind::Set;
        }
        let keys = flag.strip_prefix("list=map(");
        if let Some(keys) = keys.and_then(|keys| keys.strip_suffix(')')) {
            return ListKind::Map(keys.split(',').map(Cow::Borrowed).collect());
        }
    }
    ListKind::Atomic
}

fn patch_of(written: &'static str) -> PatchStrategy {
    let (strategies, key) = written.split_once(':').unwrap_or((written, ""));
    let has = |name: &str| strategies.split(',').any(|strategy| strategy == name);
    PatchStrategy {
        merge: has("merge"),
        replace: has("replace"),
        retain_keys: has("retainKeys"),
        key: (!key.is_empty()).then_some(Cow::Borrowed(key)),
    }
}

fn zero_of(flags: &str) -> Zero {
    let mut flags = flags.split(' ');
    let found = flags.find_map(|flag| match flag {
        "*" => Some(Zero::Kept),
        "+" => Some(Zero::Written),
        // The first flag of the three counts; a field has at most one.
        "+null" => Some(Zero::Null),
        _ => None,
    });
    found.unwrap_or(Zero::Omitted)
}

fn wire_of(flags: &str) -> Option<Wire> {
    let flags = flags.split(' ');
    // A field without a number cannot be written in protobuf, and neither can one with an unreadable number.
    let numbers: Result<_, _> = flags
        .clone()
        .find_map(|flag| flag.strip_prefix('#'))?
        .split('.')
        .map(str::parse)
        .collect();
    Some(Wire {
        numbers: numbers.ok()?,
        or: flags
            .filter_map(|flag| flag.strip_prefix("or="))
            .find_map(|or| match or {
                "bool" => Some(SchemaAlternative::Bool),
                "list" => Some(SchemaAlternative::List),
                "strings" => Some(SchemaAlternative::Strings),
                _ => None,
            }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_a_field_refers_to_is_in_the_table() {
        for (name, id) in &BUILTIN.by_name {
            assert!(matches!(BUILTIN.types.get(*id), Type::Struct(_)), "{name}");
        }
    }

    #[test]
    fn every_field_of_a_kind_has_a_number() {
        let mut pending: Vec<TypeId> = BUILTIN.kinds.values().copied().collect();
        let mut seen = std::collections::HashSet::new();
        while let Some(id) = pending.pop() {
            if !seen.insert(id.0) {
                continue;
            }
            match BUILTIN.types.get(id) {
                Type::List(list) => pending.push(list.item),
                Type::Map(map) => pending.push(map.value),
                Type::Struct(fields) => {
                    for field in fields.fields() {
                        let of_envelope = matches!(&*field.name, "kind" | "apiVersion");
                        assert!(field.wire.is_some() || of_envelope, "{field:?}");
                        pending.push(field.type_id);
                    }
                }
                Type::Scalar(_) | Type::Any => {}
            }
        }
    }

    #[test]
    fn fields_have_the_types_and_keys_of_kubernetes() {
        let pod = builtin("v1", "Pod").unwrap();
        let spec = pod.root().member("spec").unwrap();
        let containers = spec.member("containers").unwrap();
        let Some(Type::List(list)) = containers.get() else {
            panic!("{containers:?}");
        };
        assert_eq!(list.kind, ListKind::Map(vec!["name".into()]));
        assert_eq!(spec.patch("containers").key.as_deref(), Some("name"));
        let port = containers.item().member("ports").unwrap().item();
        assert_eq!(port.field("protocol").unwrap().default, Some("TCP".into()));
        let selector = spec.member("nodeSelector").unwrap();
        assert!(selector.is_atomic());
        assert!(builtin("v1", "Nonsense").is_none());
    }

    #[test]
    fn a_reference_to_a_claim_merges_member_by_member_and_other_references_do_not() {
        let volume = builtin("v1", "PersistentVolume").unwrap();
        let claim = volume.root().member("spec").unwrap();
        let claim = claim.member("claimRef").unwrap();
        assert!(!claim.is_atomic());
        assert_eq!(name_of(claim), Some("core.v1.ObjectReference"));
        let event = builtin("v1", "Event").unwrap();
        assert!(event.root().member("involvedObject").unwrap().is_atomic());
        let revision = builtin("apps/v1", "ControllerRevision").unwrap();
        assert!(revision.root().member("data").unwrap().is_atomic());
    }
}
