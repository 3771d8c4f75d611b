//! Fields of objects: the values that are indexed.

use std::fmt;
use std::sync::Arc;

use serde_json::Value as Json;

use super::path::{Path, PathError};
use super::value::{FieldType, Value};

/// Computes the value of a field from an object.
type Compute = Arc<dyn Fn(&Json) -> Option<Json> + Send + Sync>;

/// A field of a kind that queries filter, sort and count by.
///
/// ```
/// use lariat::sql::{Field, FieldType};
///
/// # fn example() -> Result<(), lariat::sql::PathError> {
/// let node = Field::path("spec.nodeName", FieldType::Text)?;
/// let images = Field::path("spec.containers[*].image", FieldType::Text)?.searchable();
/// let restarts = Field::computed("restarts", FieldType::Integer, |pod| {
///     let statuses = pod["status"]["containerStatuses"].as_array()?;
///     let counts = statuses.iter().filter_map(|it| it["restartCount"].as_i64());
///     Some(counts.sum::<i64>().into())
/// });
/// # Ok(()) }
/// # example().unwrap();
/// ```
#[derive(Clone)]
pub struct Field {
    name: Arc<str>,
    of: FieldType,
    source: Source,
    is_many: bool,
    is_searchable: bool,
}

#[derive(Clone)]
enum Source {
    Path(Path),
    Computed(Compute),
}

impl Field {
    /// Creates a field from a path, which is also its name.
    ///
    /// A path with `[*]` makes a field with any number of values; see [`many`](Self::many).
    ///
    /// # Errors
    ///
    /// Fails if the text is not a [`Path`].
    pub fn path(path: &str, of: FieldType) -> Result<Self, PathError> {
        let path: Path = path.parse()?;
        Ok(Self {
            name: path.to_string().into(),
            of,
            is_many: path.is_many(),
            source: Source::Path(path),
            is_searchable: false,
        })
    }

    /// Creates a field whose value a function computes from the object.
    ///
    /// The function returns the value as JSON, as it would be in the object: an array for a field with
    /// [many](Self::many) values. If it returns `None` or a value of another type, or panics, the object has no value;
    /// the last two cases are counted in [`SqlStatus::unindexable`](crate::SqlStatus::unindexable).
    #[must_use]
    pub fn computed(
        name: &str,
        of: FieldType,
        compute: impl Fn(&Json) -> Option<Json> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            of,
            source: Source::Computed(Arc::new(compute)),
            is_many: false,
            is_searchable: false,
        }
    }

    /// Sets the name that queries use.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = name.into();
        self
    }

    /// Allows any number of values; paths with `[*]` do so by default.
    ///
    /// A condition holds if one of the values meets it, and a negated condition if none does. Objects cannot be sorted
    /// by such a field.
    ///
    /// ```
    /// use lariat::sql::{Field, FieldType};
    ///
    /// let volumes = Field::computed("volumes", FieldType::Text, |pod| {
    ///     let volumes = pod["spec"]["volumes"].as_array()?;
    ///     Some(volumes.iter().map(|volume| volume["name"].clone()).collect())
    /// });
    /// assert!(volumes.many().is_many());
    /// ```
    #[must_use]
    pub fn many(mut self) -> Self {
        self.is_many = true;
        self
    }

    /// Makes the words searchable by [`Query::search`](crate::Query::search).
    #[must_use]
    pub fn searchable(mut self) -> Self {
        self.is_searchable = true;
        self
    }

    /// Returns the name that queries use.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the type of the values.
    #[must_use]
    pub fn field_type(&self) -> FieldType {
        self.of
    }

    /// Returns whether an object can have any number of values.
    #[must_use]
    pub fn is_many(&self) -> bool {
        self.is_many
    }

    /// Returns whether the words of the field are searchable.
    #[must_use]
    pub fn is_searchable(&self) -> bool {
        self.is_searchable
    }

    /// Returns the path of the field; `None` if it is computed.
    pub(crate) fn source_path(&self) -> Option<&Path> {
        match &self.source {
            Source::Path(path) => Some(path),
            Source::Computed(_) => None,
        }
    }

    /// Reads the values from an object.
    ///
    /// # Errors
    ///
    /// Fails if the object has a value of another type there, or more values than allowed.
    pub(crate) fn read(&self, object: &Json) -> Result<Vec<Value>, &'static str> {
        let computed;
        let found = match &self.source {
            Source::Path(path) => path.find(object)?,
            Source::Computed(compute) => {
                // A panic in a function of the program must not stop the task that writes the kind.
                let compute = std::panic::AssertUnwindSafe(|| compute(object));
                computed = std::panic::catch_unwind(compute).map_err(|_| "its function panics")?;
                match &computed {
                    // `null` in JSON means the same as an absent field.
                    None | Some(Json::Null) => Vec::new(),
                    Some(Json::Array(values)) if self.is_many => values.iter().collect(),
                    Some(value) => vec![value],
                }
            }
        };
        // A single column holds one value; which one to take would be a guess.
        if found.len() > 1 && !self.is_many {
            return Err("it has more than one value");
        }
        found.into_iter().map(|json| self.of.read(json)).collect()
    }
}

impl fmt::Debug for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Field")
            .field("name", &self.name)
            .field("of", &self.of)
            .field("is_many", &self.is_many)
            .field("is_searchable", &self.is_searchable)
            .finish_non_exhaustive()
    }
}
