//! Schemas: the indexed fields of a kind.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use lariat_core::Gvk;

use crate::association::Association;
use crate::columns::Columns;
use crate::field::{Field, FieldType};

/// The name of the field with an object's namespace.
pub(crate) const NAMESPACE: &str = "metadata.namespace";
/// The name of the field with an object's name.
pub(crate) const NAME: &str = "metadata.name";
/// The name of the field with an object's unique id.
pub(crate) const UID: &str = "metadata.uid";
/// The fields that every kind has, by position.
const BASE: [(&str, FieldType); 4] = [
    (NAMESPACE, FieldType::Text),
    (NAME, FieldType::Natural),
    ("metadata.creationTimestamp", FieldType::Time),
    (UID, FieldType::Text),
];

/// The largest number of fields of a schema.
///
/// Each is a column with an index, or a table. PostgreSQL allows 1,600 columns, two of which a natural text needs, and
/// locks every table and index that a transaction creates.
pub(crate) const MOST_FIELDS: usize = 256;

/// Returns whether the field at a position is one that every kind has.
pub(crate) fn is_base(place: usize) -> bool {
    place < BASE.len()
}

/// The indexed fields of a kind.
///
/// Every kind has `metadata.namespace`, `metadata.name` (in [natural](FieldType::Natural) order),
/// `metadata.creationTimestamp` and `metadata.uid`. Labels need no field: queries name them as `metadata.labels[app]`.
///
/// ```
/// use lariat::sql::{Field, FieldType, Schema};
/// use lariat::Gvk;
///
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Field::path("spec.nodeName", FieldType::Text)?;
/// let schema = Schema::new(Gvk::new("", "v1", "Pod"), [node])?;
/// assert!(schema.fields().iter().any(|field| field.name() == "spec.nodeName"));
/// # Ok(()) }
/// # example().unwrap();
/// ```
#[derive(Clone)]
pub struct Schema {
    gvk: Gvk,
    fields: Arc<[Field]>,
    places: Arc<HashMap<Arc<str>, usize>>,
    associations: Vec<Association>,
    /// The number of printer columns that could not become fields.
    skipped: usize,
    /// Whether a cache adds printer columns when it starts.
    reads_columns: bool,
}

impl Schema {
    /// Creates a schema with these fields and those that every kind has.
    ///
    /// # Errors
    ///
    /// Fails if two fields have one name, a field has an empty name or the name of a field that every kind has, or
    /// there are more than 252 fields.
    pub fn new(
        gvk: impl Into<Gvk>,
        fields: impl IntoIterator<Item = Field>,
    ) -> Result<Self, SchemaError> {
        let gvk = gvk.into();
        let base = BASE.iter().map(|(path, of)| {
            let field = Field::path(path, *of);
            // The paths are constants which parse; the fallback only avoids a panic.
            field.unwrap_or_else(|_| Field::computed(path, *of, |_| None))
        });
        Self::of(gvk, base.chain(fields).collect())
    }

    /// Creates a schema from fields with different names.
    fn of(gvk: Gvk, fields: Vec<Field>) -> Result<Self, SchemaError> {
        if fields.len() > MOST_FIELDS {
            let fault = Fault::TooMany(fields.len());
            return Err(SchemaError { gvk, fault });
        }
        let mut places = HashMap::with_capacity(fields.len());
        for (place, field) in fields.iter().enumerate() {
            let name: Arc<str> = field.name().into();
            if name.is_empty() || places.insert(Arc::clone(&name), place).is_some() {
                let fault = Fault::Field(name);
                return Err(SchemaError { gvk, fault });
            }
        }
        Ok(Self {
            gvk,
            fields: fields.into(),
            places: Arc::new(places),
            associations: Vec::new(),
            skipped: 0,
            reads_columns: true,
        })
    }

    /// Adds the printer columns of a CRD as fields.
    ///
    /// The columns are those of the version of the kind. A column is named by its `jsonPath` without the leading dot,
    /// as other fields are: `.spec.replicas` is `spec.replicas`. Columns of the types `integer`, `number`, `string`,
    /// `boolean` and `date` are [`Integer`](FieldType::Integer), [`Real`](FieldType::Real), [`Text`](FieldType::Text),
    /// [`Boolean`](FieldType::Boolean) and [`Time`](FieldType::Time). Fields of the schema with the same name are kept,
    /// and columns of labels are left out, because labels need no field. A column of another type, or with a `jsonPath`
    /// that is not a valid [`Path`](crate::Path), is left out with a warning, and counted in
    /// [`SqlStatus`](crate::SqlStatus::skipped_columns). So are the columns after the 256th field of the schema, with
    /// one warning.
    ///
    /// # Errors
    ///
    /// Fails if the CRD is of another kind, or does not have the version.
    pub fn with_columns(self, definition: &CustomResourceDefinition) -> Result<Self, SchemaError> {
        let spec = &definition.spec;
        // The definition of another kind would add fields that no object has.
        let is_same = spec.group == self.gvk.group() && spec.names.kind == self.gvk.kind();
        let columns = Columns::of(definition, self.gvk.version()).filter(|_| is_same);
        let Some(columns) = columns else {
            let versions: Vec<&str> = spec
                .versions
                .iter()
                .map(|version| version.name.as_str())
                .collect();
            let (kind, group, versions) = (&spec.names.kind, &spec.group, versions.join(", "));
            let fault = Fault::Definition(format!("{kind} of {group} in {versions}").into());
            let gvk = self.gvk;
            return Err(SchemaError { gvk, fault });
        };
        for (column, reason) in &columns.skipped {
            let kind = &self.gvk;
            tracing::warn!(%kind, column, reason, "a printer column is left out; add a field for it to the schema");
        }
        let mut fields = self.fields.to_vec();
        // A field of the program wins: it can have another type, or be searchable.
        let mut names: HashSet<String> = fields.iter().map(|it| it.name().to_owned()).collect();
        let mut added = columns.fields;
        added.retain(|field| names.insert(field.name().to_owned()));
        fields.extend(added);
        let surplus = fields.len().saturating_sub(MOST_FIELDS);
        if surplus > 0 {
            let kind = &self.gvk;
            tracing::warn!(%kind, surplus, most = MOST_FIELDS, "printer columns are left out, because a schema has too many fields with them");
            fields.truncate(MOST_FIELDS);
        }
        Ok(Self {
            associations: self.associations,
            skipped: self.skipped + columns.skipped.len() + surplus,
            reads_columns: false,
            ..Self::of(self.gvk, fields)?
        })
    }

    /// Leaves out the printer columns of a custom kind.
    ///
    /// By default a [cache](crate::SqlCacheBuilder::kind) adds them.
    #[must_use]
    pub fn without_columns(mut self) -> Self {
        self.reads_columns = false;
        self
    }

    /// Returns whether a cache adds printer columns.
    pub(crate) fn reads_columns(&self) -> bool {
        self.reads_columns
    }

    /// Returns the number of printer columns that could not become fields.
    pub(crate) fn skipped_columns(&self) -> usize {
        self.skipped
    }

    /// Allows queries by fields and labels of associated objects of another kind.
    ///
    /// Queries use the name of the association. Rows do not depend on it: a cache in a file is not written again.
    ///
    /// # Errors
    ///
    /// Fails if the name is taken, or is not a letter followed by letters, digits, `_` and `-`; or if the schema lacks
    /// the field of this kind. The other kind is checked when the cache starts.
    pub fn associate(mut self, association: Association) -> Result<Self, SchemaError> {
        let name = association.name();
        let mut others = self.associations.iter();
        let fault = if !association.has_name() || others.any(|other| other.name() == name) {
            Some(Fault::Association(name.into()))
        } else {
            let own = association
                .own_field()
                .filter(|own| self.place(own).is_none());
            own.map(|own| Fault::Unknown(self.unknown(own).to_string().into()))
        };
        if let Some(fault) = fault {
            let gvk = self.gvk;
            return Err(SchemaError { gvk, fault });
        }
        self.associations.push(association);
        Ok(self)
    }

    /// Returns the associations, in the order in which they were added.
    #[must_use]
    pub fn associations(&self) -> &[Association] {
        &self.associations
    }

    /// Creates the error of an unknown field.
    pub(crate) fn unknown(&self, name: &str) -> UnknownField {
        let fields = self.fields.iter();
        UnknownField {
            kind: self.gvk.clone(),
            field: name.to_owned(),
            known: fields.map(|field| field.name().to_owned()).collect(),
        }
    }

    /// Returns the kind of the objects.
    #[must_use]
    pub fn gvk(&self) -> &Gvk {
        &self.gvk
    }

    /// Returns the fields, beginning with those that every kind has.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Returns the position of a field among the fields.
    pub(crate) fn place(&self, name: &str) -> Option<usize> {
        self.places.get(name).copied()
    }

    /// Returns a text that differs between schemas whose stored rows differ.
    ///
    /// It does not depend on the function that computes a field: a program that changes the function must rename the
    /// field.
    pub(crate) fn signature(&self) -> String {
        let fields = self.fields.iter().map(|field| {
            let (name, of) = (field.name(), field.field_type());
            let (many, searchable) = (field.is_many(), field.is_searchable());
            // A function cannot be compared, so a change of one goes unnoticed if name and type stay.
            let path = field.source_path().map(ToString::to_string);
            format!("{name:?} {of:?} {many} {searchable} {path:?}")
        });
        fields.collect::<Vec<_>>().join("; ")
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema")
            .field("gvk", &self.gvk)
            .field("fields", &self.fields)
            .field("associations", &self.associations)
            .finish_non_exhaustive()
    }
}

/// The error of a field that a schema does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} has no indexed field {field:?}; it has {}", known.join(", "))]
pub(crate) struct UnknownField {
    pub(crate) kind: Gvk,
    pub(crate) field: String,
    pub(crate) known: Vec<String>,
}

/// The error of an invalid schema.
///
/// A name in it is empty, used twice or unknown, its columns are those of another kind, or it has too many fields.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the schema of {gvk}: {fault}")]
pub struct SchemaError {
    gvk: Gvk,
    fault: Fault,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum Fault {
    #[error("it has two fields named {0:?}, or one without a name: give each a unique name")]
    Field(Arc<str>),
    #[error(
        "the association {0:?} has the name of another one, or an invalid name: use a letter, followed by letters, digits, _ or -"
    )]
    Association(Arc<str>),
    #[error(
        "the CustomResourceDefinition defines {0}: use the definition of the kind, with its version"
    )]
    Definition(Box<str>),
    #[error("it has {0} fields, and {MOST_FIELDS} are the most: index fewer")]
    TooMany(usize),
    #[error("the field of an association does not exist: {0}")]
    Unknown(Box<str>),
}
