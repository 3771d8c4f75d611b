//! Conditions on fields and labels.

use std::fmt;

/// The operator of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operator {
    /// The value equals the given one (`=`).
    Equal,
    /// The opposite of [`Equal`](Self::Equal) (`!=`).
    NotEqual,
    /// The text contains the given one, ignoring ASCII case (`~`).
    Like,
    /// The opposite of [`Like`](Self::Like) (`!~`).
    NotLike,
    /// The value is one of the given ones (`in`).
    In,
    /// The opposite of [`In`](Self::In) (`notin`).
    NotIn,
    /// The value comes before the given one (`<`).
    Less,
    /// The value comes before the given one, or equals it (`<=`).
    AtMost,
    /// The value comes after the given one (`>`).
    Greater,
    /// The value comes after the given one, or equals it (`>=`).
    AtLeast,
    /// There is a value (`exists`).
    Exists,
    /// There is no value (`!exists`).
    Missing,
    /// One of the values of a field that has many equals the given one (`contains`).
    Contains,
    /// The opposite of [`Contains`](Self::Contains) (`notcontains`).
    NotContains,
}

impl Operator {
    /// Returns the operator as it is written in a filter.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Like => "~",
            Self::NotLike => "!~",
            Self::In => "in",
            Self::NotIn => "notin",
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::Greater => ">",
            Self::AtLeast => ">=",
            Self::Exists => "exists",
            Self::Missing => "!exists",
            Self::Contains => "contains",
            Self::NotContains => "notcontains",
        }
    }
}

/// The subject of a condition or an order: a field or a label.
///
/// It belongs to the object, or to an associated one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Subject {
    /// A field, by its name.
    Field(String),
    /// A label, by its key; its values are [texts](crate::FieldType::Text).
    Label(String),
    /// A field or label of the objects of an [`Association`](crate::Association).
    Associated {
        /// The name of the association.
        association: String,
        /// The field or label of the other objects.
        of: Box<Subject>,
    },
}

/// Names a field, for conditions, orders and summaries.
///
/// `metadata.labels[app]` names the label `app`.
///
/// ```
/// use lariat::sql::{Query, field};
///
/// let query = Query::new().filter(field("spec.nodeName").equals("node-1")).sort(field("metadata.name"));
/// # let _ = query;
/// ```
#[must_use]
pub fn field(name: &str) -> Subject {
    Subject::parse(name)
}

/// Names a label, for conditions, orders and summaries.
///
/// ```
/// use lariat::sql::{Query, label};
///
/// let query = Query::new().filter(label("app").is_in(["web", "api"])).sort(label("tier"));
/// # let _ = query;
/// ```
#[must_use]
pub fn label(key: &str) -> Subject {
    Subject::Label(key.to_owned())
}

/// Names a field or label of associated objects.
///
/// It is for conditions, orders and summaries.
///
/// A condition holds if one of the objects meets it, and a negated condition if none does. In a URL it is written with
/// a colon, as in `node:status.capacity.memory`.
///
/// ```
/// use lariat::sql::{Query, associated, field};
///
/// let query = Query::new().filter(associated("node", field("status.capacity.memory")).greater_than("64Gi"));
/// # let _ = query;
/// ```
#[must_use]
pub fn associated(association: &str, of: Subject) -> Subject {
    Subject::Associated {
        association: association.to_owned(),
        of: Box::new(of),
    }
}

impl Subject {
    /// Parses the name of a field or label.
    ///
    /// A label has the form `metadata.labels[app]` or `metadata.labels.app`; any other text is the name of a field.
    #[must_use]
    pub fn parse(name: &str) -> Self {
        let label = name.strip_prefix("metadata.labels").and_then(|rest| {
            let bracketed = rest
                .strip_prefix('[')
                .and_then(|it| it.strip_suffix(']'))
                .map(|key| key.trim_matches(['\'', '"']));
            // Keys of labels contain dots, so all that follows is the key.
            bracketed.or_else(|| rest.strip_prefix('.'))
        });
        match label.filter(|key| !key.is_empty()) {
            Some(key) => Self::Label(key.to_owned()),
            None => Self::Field(name.to_owned()),
        }
    }

    /// Creates a condition with an operator and its values.
    ///
    /// [`In`](Operator::In) and [`NotIn`](Operator::NotIn) take any number of values, [`Exists`](Operator::Exists) and
    /// [`Missing`](Operator::Missing) none, and all others one.
    ///
    /// ```
    /// use lariat::sql::{Operator, field};
    ///
    /// let small = field("spec.replicas").is(Operator::AtMost, [3]);
    /// assert_eq!(Operator::AtMost.symbol(), "<=");
    /// # let _ = small;
    /// ```
    #[must_use]
    pub fn is(
        self,
        operator: Operator,
        values: impl IntoIterator<Item = impl ToString>,
    ) -> Condition {
        Condition {
            subject: self,
            operator,
            values: values.into_iter().map(|value| value.to_string()).collect(),
        }
    }

    /// Requires a value that equals the given one.
    #[must_use]
    pub fn equals(self, value: impl ToString) -> Condition {
        self.is(Operator::Equal, [value])
    }

    /// Requires that no value equals the given one; objects without a value meet it.
    #[must_use]
    pub fn differs(self, value: impl ToString) -> Condition {
        self.is(Operator::NotEqual, [value])
    }

    /// Requires a text that contains the given one, ignoring ASCII case.
    #[must_use]
    pub fn like(self, part: impl ToString) -> Condition {
        self.is(Operator::Like, [part])
    }

    /// Requires one of these values.
    #[must_use]
    pub fn is_in(self, values: impl IntoIterator<Item = impl ToString>) -> Condition {
        self.is(Operator::In, values)
    }

    /// Requires a value before the given one.
    #[must_use]
    pub fn less_than(self, value: impl ToString) -> Condition {
        self.is(Operator::Less, [value])
    }

    /// Requires a value after the given one.
    #[must_use]
    pub fn greater_than(self, value: impl ToString) -> Condition {
        self.is(Operator::Greater, [value])
    }

    /// Requires any value.
    #[must_use]
    pub fn exists(self) -> Condition {
        self.is(Operator::Exists, [""; 0])
    }

    /// Requires a list of values that contains the given one.
    #[must_use]
    pub fn contains(self, value: impl ToString) -> Condition {
        self.is(Operator::Contains, [value])
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => f.write_str(name),
            Self::Label(key) => write!(f, "metadata.labels[{key}]"),
            Self::Associated { association, of } => write!(f, "{association}:{of}"),
        }
    }
}

/// A condition on a field or a label, not yet checked against a kind.
///
/// ```
/// use lariat::sql::{field, label};
///
/// let on_one = field("spec.nodeName").equals("node-1");
/// let either = label("app").equals("web").or(field("metadata.name").like("web"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Condition {
    pub(super) subject: Subject,
    pub(super) operator: Operator,
    pub(super) values: Vec<String>,
}

impl Condition {
    /// Combines two conditions, of which at least one must hold.
    ///
    /// ```
    /// use lariat::sql::{Query, field};
    ///
    /// let broken = field("status.phase").equals("Failed").or(field("status.phase").equals("Unknown"));
    /// let query = Query::new().filter(broken);
    /// # let _ = query;
    /// ```
    #[must_use]
    pub fn or(self, other: impl Into<AnyOf>) -> AnyOf {
        let mut all = AnyOf(vec![self]);
        all.0.extend(other.into().0);
        all
    }
}

/// Conditions of which at least one must hold.
///
/// ```
/// use lariat::sql::{AnyOf, field};
///
/// let any: AnyOf = field("spec.nodeName").exists().or(field("status.podIP").exists());
/// # let _ = any;
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct AnyOf(pub(super) Vec<Condition>);

impl AnyOf {
    /// Adds another condition.
    #[must_use]
    pub fn or(mut self, other: impl Into<Self>) -> Self {
        self.0.extend(other.into().0);
        self
    }
}

impl From<Condition> for AnyOf {
    fn from(condition: Condition) -> Self {
        Self(vec![condition])
    }
}

impl FromIterator<Condition> for AnyOf {
    fn from_iter<I: IntoIterator<Item = Condition>>(conditions: I) -> Self {
        Self(conditions.into_iter().collect())
    }
}
